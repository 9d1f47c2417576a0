package rowkey

import "strings"

// headKind follows the dataset in the keys of head rows.
const headKind = "head"

// Heads returns the space of the dataset's head rows, one an entity, beside that of its points. The key of a head row is
// what AppendEntity gives there, and Under gives the ranges of the head rows below a prefix. It is shorter than the keys of
// the entity's points, so that CheckPath of the points holds for it too.
func (s Space) Heads() Space { return s.Kind(headKind) }

// SplitEntity takes the key of a head row apart. It reports false for any key that AppendEntity does not make in this
// space. The path is a part of key.
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
	if !ok || countParts(path) != len(s.fields) || !canonical(path) {
		return "", false
	}
	if salt >= 0 && Salt(path, s.salts) != salt {
		return "", false
	}
	return path, true
}
