package rowkey

// Datasets returns the range of the catalogue's rows of datasets.
func Datasets() Range {
	return Range{Start: DatasetRows, Limit: DatasetRows[:len(DatasetRows)-1] + string(rune(afterDel))}
}

// PastEntity returns r without the keys up to the last point of the entity at path.
func (s Space) PastEntity(r Range, path string) Range {
	return Range{Start: s.Entity(path, 0, maxUnits).Limit, Limit: r.Limit}
}
