package rowkey

// The store's own rows, all below every tenant's. No tenant's name can hold the mark that they start with.
const (
	// FormatRow holds the version of the stored format.
	FormatRow = "!format"
	// DatasetRows is the prefix of the catalogue's rows, one a dataset, followed by its name.
	DatasetRows = "!dataset#"
	// ProbeRows is the prefix of rows by which the store finds out what the service does, and which it deletes at once.
	ProbeRows = "!probe#rollup#"
)
