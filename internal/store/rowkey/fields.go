package rowkey

// fieldsKind follows the dataset in the key of the row that lists its fields.
const fieldsKind = "fields"

// FieldsRow returns the key of the row that lists the fields of the tenant's dataset.
func (id ID) FieldsRow() string {
	if id.prefix == "" {
		return ""
	}
	return id.prefix[:len(id.prefix)-1] + kindMark + fieldsKind + string(rune(delim))
}

// IsFieldsRow reports whether a key is that of a row that lists fields.
func IsFieldsRow(key string) bool {
	_, kind, ok := KindOf(key)
	return ok && kind == fieldsKind
}
