package rowkey

import "strings"

// ID identifies one entity of one tenant's dataset. IDs are comparable with ==. Two are equal only if the keys of their
// points start with the same bytes: never for two tenants, two datasets or two numbers of salts.
type ID struct {
	prefix string // "<tenant>#<dataset>#"
	salts  int
	path   string
}

// ID returns the ID of the entity at path, which must have passed CheckPath.
func (s Space) ID(path string) ID { return ID{prefix: s.prefix, salts: s.salts, path: path} }

// Clone returns an ID with its own memory, for use after the key or the path that it was made from.
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

// Dataset returns the ID that all entities of the same tenant, dataset and number of salts share.
func (id ID) Dataset() ID { return ID{prefix: id.prefix, salts: id.salts} }

// Len returns the length of the ID's text in bytes.
func (id ID) Len() int { return len(id.prefix) + len(id.path) }

// Below reports whether the entity belongs to this space and is below the prefix at path. The empty path means any
// entity of the space.
func (id ID) Below(s Space, path string) bool {
	if id.prefix != s.prefix || id.salts != s.salts {
		return false
	}
	rest, ok := strings.CutPrefix(id.path, path)
	return ok && (path == "" || rest != "" && rest[0] == delim)
}
