package rowkey

// The store's own rows, all below every tenant's. No tenant's name can hold the mark that they start with.
const (
	// FormatRow holds the version of the stored format.
	FormatRow = "!format"
	// DatasetRows is the prefix of the catalogue's rows, one a dataset, followed by its name.
	DatasetRows = "!dataset#"
	// ProbeRows is the prefix of rows by which the store finds out what the service does, and which it deletes at once.
	ProbeRows = "!probe#rollup#"
	// ProfileRows is the prefix of the rows of tenants' profiles, one a tenant, followed by its name.
	ProfileRows = "!tenant#"
	// ProfilesRow says by what it holds which profiles have changed.
	ProfilesRow = "!tenant"
	// MarkRows is the prefix of the erasure marks: a tenant's name follows, and for a mark of one entity "#" and a name for it.
	MarkRows = "!erased#"
	// MarksRow says by what it holds which marks have changed.
	MarksRow = "!erased"
	// DeletedMark stands between MarkRows and a dataset's name in the mark of a dataset that is deleted. No tenant's name holds it.
	DeletedMark = "!"
	// RemovalRows is the prefix of the removals that have not ended of parts of datasets: a dataset's name follows, "#", and the part.
	RemovalRows = "!job#remove#"
)

// OwnAfter returns what is left of the rows with one of the prefixes above behind the one of that name; all for the empty name.
func OwnAfter(prefix, name string) Range {
	r := Range{Start: prefix, Limit: prefix[:len(prefix)-1] + string(rune(afterDel))}
	if name != "" {
		r.Start = prefix + name + "\x00"
	}
	return r
}
