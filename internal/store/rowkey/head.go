package rowkey

import "strings"

// headKind follows the dataset in the keys of head rows.
const headKind = "head"

// Heads returns the space of the dataset's head rows, one for each entity. AppendEntity returns the key of a head row
// there, and Under the ranges of the head rows below a prefix. The key is shorter than those of the entity's points, so
// CheckPath of the points' space covers it too.
func (s Space) Heads() Space { return s.Kind(headKind) }

// SplitEntity splits the key of a head row. It returns false for any key that AppendEntity does not produce in this
// space. The path shares key's memory.
func (s Space) SplitEntity(key string) (path string, ok bool) {
	rest, ok := strings.CutPrefix(key, s.prefix)
	if !ok || s.prefix == "" {
		return "", false
	}
	salt := -1
	if s.salts > 0 {
		if salt, rest, ok = cutSalt(rest, s.salts); !ok {
			return "", false
		}
	}
	path, ok = strings.CutSuffix(rest, string(delim))
	if !ok || CountParts(path) != len(s.fields) || !canonical(path) {
		return "", false
	}
	if salt >= 0 && Salt(path, s.salts) != salt {
		return "", false
	}
	return path, true
}
