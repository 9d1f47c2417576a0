package rowkey

import (
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// TenantRange returns the range of every row of a tenant: of all datasets, known or not, and of all kinds. Its error
// wraps tenant.ErrInvalid for the zero tenant.
func TenantRange(id tenant.ID) (Range, error) {
	if id.IsZero() {
		return Range{}, invalid.New(tenant.ErrInvalid, "tenant", "empty", "a tenant from tenant.Parse")
	}
	return Range{Start: id.String() + string(rune(delim)), Limit: id.String() + string(rune(afterDel))}, nil
}

// Marks returns the range of the marks of all rollups of a tenant's dataset. Its error wraps tenant.ErrInvalid for the
// zero tenant.
func Marks(id tenant.ID, dataset string) (Range, error) {
	of, err := TenantRange(id)
	if err != nil {
		return Range{}, err
	}
	start := of.Start + dataset + kindMark + MarkKind
	return Range{Start: start, Limit: start[:len(start)-1] + string(rune(MarkKind[len(MarkKind)-1]+1))}, nil
}

// TenantsAfter returns the range of the rows of all tenants whose names sort after id's; the zero tenant means all.
// Rows of other programs may be among them. It is the only range that spans tenants.
func TenantsAfter(id tenant.ID) Range {
	all := Range{Start: "-", Limit: "{"} // includes the first bytes of all valid names
	if !id.IsZero() {
		all.Start = id.String() + string(rune(afterDel))
	}
	return all
}

// TenantOf returns the tenant whose range contains a key. It returns false for keys outside every tenant's range.
func TenantOf(key string) (tenant.ID, bool) {
	name, _, ok := strings.Cut(key, string(rune(delim)))
	if !ok {
		return tenant.ID{}, false
	}
	id, err := tenant.Parse(name)
	return id, err == nil
}

// maxKind is the length of the longest kind that KindOf accepts.
const maxKind = 64

// KindOf splits the beginning of a tenant's key: the dataset, and the kind of the row, which is empty for a point. It
// returns false if it cannot find both, as in a key of another program that starts like one of the tenant's.
func KindOf(key string) (dataset, kind string, ok bool) {
	_, rest, ok := strings.Cut(key, string(rune(delim)))
	if !ok {
		return "", "", false
	}
	head, _, ok := strings.Cut(rest, string(rune(delim)))
	if !ok {
		return "", "", false
	}
	dataset, kind, reserved := strings.Cut(head, "!")
	if CheckDataset(dataset) != nil || reserved && !kindName(kind) {
		return "", "", false
	}
	return dataset, kind, true
}

// kindName reports whether a reserved kind may have that name.
func kindName(kind string) bool {
	if kind == "" || len(kind) > maxKind {
		return false
	}
	for i := range len(kind) {
		if !invalid.NameByte(kind[i]) {
			return false
		}
	}
	return true
}

// Starts returns the two ranges that hold all rows of the dataset: its points, and its rows of other kinds.
func (s Space) Starts() [2]Range {
	name := s.prefix[:len(s.prefix)-1]
	return [2]Range{{Start: name + "!", Limit: name + "\""}, {Start: s.prefix, Limit: name + string(rune(afterDel))}}
}

// Reserved is Kind for a kind that was read from a key. It returns false for an impossible kind.
func (s Space) Reserved(kind string) (Space, bool) {
	if s.prefix == "" || !kindName(kind) {
		return Space{}, false
	}
	return s.Kind(kind), true
}

// All returns the range of all rows in the space.
func (s Space) All() Range {
	return Range{Start: s.prefix, Limit: s.prefix[:len(s.prefix)-1] + string(rune(afterDel))}
}

// Whole returns the range of all rows of the entity at path, which must have passed CheckPath, whatever follows the
// path in the key.
func (s Space) Whole(path string) Range {
	var buf [256]byte
	start := string(s.AppendEntity(buf[:0], path))
	return Range{Start: start, Limit: start[:len(start)-1] + string(rune(afterDel))}
}

// Path returns the entity's path.
func (id ID) Path() string { return id.path }
