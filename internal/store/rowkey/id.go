package rowkey

import "strings"

// ID names one entity of one tenant's dataset. It is comparable with ==, and two are the same only where the keys of their
// points start with the same bytes: of two tenants, two datasets or two numbers of salts none are.
type ID struct {
	prefix string // "<tenant>#<dataset>#"
	salts  int
	path   string
}

// ID returns the ID of the entity at path, which must have passed CheckPath.
func (s Space) ID(path string) ID { return ID{prefix: s.prefix, salts: s.salts, path: path} }

// Clone returns an ID of its own memory, for one that outlives the key or the path that it was made of.
func (id ID) Clone() ID {
	both := id.prefix + id.path
	id.prefix, id.path = both[:len(id.prefix)], both[len(id.prefix):]
	return id
}

// Tenant returns the name of the entity's tenant.
func (id ID) Tenant() string {
	name, _, _ := strings.Cut(id.prefix, string(rune(delim)))
	return name
}

// Len is how many bytes the ID's text takes.
func (id ID) Len() int { return len(id.prefix) + len(id.path) }

// Below reports whether the entity is one of this space, below the prefix at path: any of the space for the empty path.
func (id ID) Below(s Space, path string) bool {
	if id.prefix != s.prefix || id.salts != s.salts {
		return false
	}
	rest, ok := strings.CutPrefix(id.path, path)
	return ok && (path == "" || rest != "" && rest[0] == delim)
}
