package rowkey

// The store's own rows, which sort before every tenant's. No tenant's name can contain the byte that they start with.
const (
	// FormatRow holds the version of the stored format.
	FormatRow = "!format"
	// DatasetRows is the prefix of the catalogue's rows, one for each dataset; the dataset's name follows.
	DatasetRows = "!dataset#"
	// ProbeRows is the prefix of rows with which the store tests the service's behaviour, and which it deletes at once.
	ProbeRows = "!probe#rollup#"
	// ProfileRows is the prefix of the rows of tenants' profiles, one for each tenant; the tenant's name follows.
	ProfileRows = "!tenant#"
	// ProfilesRow is the change log of profiles.
	ProfilesRow = "!tenant"
	// MarkRows is the prefix of the erasure marks. A tenant's name follows, and for a mark of one entity "#" and the
	// mark's name.
	MarkRows = "!erased#"
	// MarksRow is the change log of erasure marks.
	MarksRow = "!erased"
	// DeletedMark separates MarkRows from a dataset's name in the mark of a deleted dataset. No tenant's name contains
	// it.
	DeletedMark = "!"
	// RemovalRows is the prefix of unfinished removals of parts of datasets. A dataset's name follows, then "#" and the
	// part.
	RemovalRows = "!job#remove#"
)

// OwnAfter returns the range of the rows with one of the prefixes above after the row of that name; the empty name
// means all of them.
func OwnAfter(prefix, name string) Range {
	r := Range{Start: prefix, Limit: prefix[:len(prefix)-1] + string(rune(afterDel))}
	if name != "" {
		r.Start = prefix + name + "\x00"
	}
	return r
}
