// Package rowkey is the grammar of a store's row keys: it builds, splits and bounds the keys of points. It is the only
// package that builds keys and ranges, and it builds them only from a validated tenant, so a key cannot leave its
// tenant's range. All of it is pure functions.
//
// A point row is
//
//	<tenant>#<dataset>#[<salt>#]<part>#…#<part>#<reverse time>
//
// docs/format.md is the full specification.
package rowkey

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// Limits of the grammar. MaxKey is Cloud Bigtable's own limit for a row key.
const (
	MaxKey = 4096

	maxDataset = 32
	maxParts   = 8
	maxSalts   = 100
)

const (
	delim    = '#' // ends the tenant, the dataset, the salt and each part
	afterDel = '$' // the byte after delim: the range of a prefix with delim ends at the same prefix with this byte
	escape   = '%'
	lastEsc  = 0x25 // bytes up to this one are escaped in a part
)

// ErrInvalid is wrapped by every error about input from which no key can be built.
var ErrInvalid = invalid.ErrInput

// Space is the part of the key space that holds one tenant's points of one dataset. The zero Space holds nothing;
// create one with NewSpace.
type Space struct {
	prefix string // "<tenant>#<dataset>#"
	tenant int    // length of "<tenant>#"
	fields []string
	kinds  []FieldKind // of the fields; nil if all are text
	salts  int
	spare  int // how many bytes longer the longest key of another kind is

	identity bool // keys of points end with an id
}

// NewSpace returns the space of a tenant's dataset whose keys have the given key fields and salts (0 for none). Its
// error wraps tenant.ErrInvalid for the zero tenant. Dataset, fields and salts must have passed CheckDataset and
// CheckFields.
func NewSpace(id tenant.ID, dataset string, fields []string, salts int) (Space, error) {
	if id.IsZero() {
		return Space{}, invalid.New(tenant.ErrInvalid, "tenant", "empty", "a tenant from tenant.Parse")
	}
	prefix := id.String() + "#" + dataset + "#"
	return Space{prefix: prefix, tenant: len(id.String()) + 1, fields: fields, salts: salts}, nil
}

// WithKinds returns s with stricter CheckPath and CheckPrefix: they also refuse parts that the kinds of their fields do
// not produce. The kinds must have passed CheckKinds. Split still accepts any part, so that stored rows stay readable.
func (s Space) WithKinds(kinds []FieldKind) Space {
	s.kinds = kinds
	return s
}

// TenantPrefix returns the common prefix of all keys of the space's tenant, including its delimiter.
func (s Space) TenantPrefix() string { return s.prefix[:s.tenant] }

// AppendEntity appends the common prefix of the keys of all points of the entity at path, including the last delimiter.
func (s Space) AppendEntity(dst []byte, path string) []byte {
	dst = append(dst, s.prefix...)
	if s.salts > 0 {
		dst = appendSalt(dst, Salt(path, s.salts))
	}
	dst = append(dst, path...)
	return append(dst, delim)
}

// AppendPoint appends the key of the point of the entity at path at the given time in units of the dataset's precision.
func (s Space) AppendPoint(dst []byte, path string, units int64) []byte {
	return appendReverse(s.AppendEntity(dst, path), uint64(maxUnits-units))
}

// Split splits the key of a point. It returns false for any key that AppendEvent does not produce in this space: rows
// of other tenants and datasets, reserved rows, and rows of other programs in the same table. The path shares key's
// memory.
func (s Space) Split(key string) (path string, units int64, ok bool) {
	path, units, _, ok = s.SplitEvent(key)
	return path, units, ok
}

// split is Split for a key without its id.
func (s Space) split(key string) (path string, units int64, ok bool) {
	cut := max(0, len(key)-ReverseLen)
	if units, ok = parseReverse(key[cut:]); ok {
		path, ok = s.SplitEntity(key[:cut])
	}
	if !ok {
		return "", 0, false
	}
	return path, units, true
}

// CheckPath returns an error if the path of an entity of this space is invalid: its number of parts, an empty part,
// invalid UTF-8, or keys longer than MaxKey. It allocates only for an error.
func (s Space) CheckPath(path string) error {
	if got := CountParts(path); got != len(s.fields) {
		return invalid.New(ErrInvalid, "entity", fmt.Sprintf("%s with %s", invalid.Quote(Text(path)), plural(got)),
			fmt.Sprintf("exactly %d, one for each key field (%s)", len(s.fields), strings.Join(s.fields, ", ")))
	}
	if err := s.checkParts(path); err != nil {
		return err
	}
	if n := s.KeyLen(path); n > MaxKey {
		return invalid.New(ErrInvalid, "row key", fmt.Sprintf("%d bytes for entity %s", n, invalid.Quote(Text(path))),
			fmt.Sprintf("at most %d bytes", MaxKey))
	}
	return nil
}

// KeyLen returns the length in bytes of the longest row key that a point of an entity can have.
func (s Space) KeyLen(path string) int {
	n := len(s.prefix) + s.spare + len(path) + 1 + ReverseLen
	if s.identity {
		n += 1 + MaxID
	}
	if s.salts > 0 {
		n += saltLen
	}
	return n
}

func plural(parts int) string {
	if parts == 1 {
		return "1 part"
	}
	return fmt.Sprintf("%d parts", parts)
}

// CheckPrefix is CheckPath for a prefix, which has fewer parts than the dataset has key fields.
func (s Space) CheckPrefix(path string) error {
	if got := CountParts(path); got >= len(s.fields) {
		return invalid.New(ErrInvalid, "prefix", fmt.Sprintf("%s with %s", invalid.Quote(Text(path)), plural(got)),
			fmt.Sprintf("fewer than the %d key fields (%s)", len(s.fields), strings.Join(s.fields, ", ")))
	}
	if path == "" {
		return nil
	}
	if err := s.checkParts(path); err != nil {
		return err
	}
	n := len(s.prefix) + s.spare + len(path) + 1
	if s.salts > 0 {
		n += saltLen
	}
	if n > MaxKey {
		return invalid.New(ErrInvalid, "row key", fmt.Sprintf("%d bytes for prefix %s", n, invalid.Quote(Text(path))),
			fmt.Sprintf("at most %d bytes", MaxKey))
	}
	return nil
}

func (s Space) checkParts(path string) error {
	for i, rest, more := 0, path, true; more; i++ {
		var part string
		part, rest, more = strings.Cut(rest, "#")
		switch {
		case part == "":
			return invalid.New(ErrInvalid, "key field "+s.fields[i], "empty", "at least 1 byte")
		case !utf8.ValidString(part):
			return invalid.New(ErrInvalid, "key field "+s.fields[i], invalid.Quote(part), "valid UTF-8")
		case s.kinds != nil && !s.kinds[i].fits(part):
			return s.kinds[i].partError(s.fields[i], part)
		}
	}
	return nil
}

// CheckDataset returns an error unless a dataset's name has 1 to 32 bytes of A-Z a-z 0-9 . _ - and is neither "." nor
// "..".
func CheckDataset(name string) error {
	const want = "1 to 32 bytes of A-Z a-z 0-9 . _ -, not \".\" or \"..\""
	if name == "" || len(name) > maxDataset || name == "." || name == ".." {
		return invalid.New(ErrInvalid, "dataset", invalid.Quote(name), want)
	}
	for i := range len(name) {
		if !invalid.NameByte(name[i]) {
			return invalid.New(ErrInvalid, "dataset", fmt.Sprintf("%s with byte 0x%02x at %d", invalid.Quote(name), name[i], i), want)
		}
	}
	return nil
}

// CheckFields returns an error if a dataset's key fields or number of salts are invalid.
func CheckFields(fields []string, salts int) error {
	if len(fields) < 1 || len(fields) > maxParts {
		return invalid.New(ErrInvalid, "key", fmt.Sprintf("%d fields", len(fields)), "1 to 8 fields")
	}
	for i, f := range fields {
		if f == "" || len(f) > 64 || !utf8.ValidString(f) {
			return invalid.New(ErrInvalid, fmt.Sprintf("key field %d", i+1), invalid.Quote(f), "a name of 1 to 64 bytes of UTF-8")
		}
		for _, g := range fields[:i] {
			if f == g {
				return invalid.New(ErrInvalid, fmt.Sprintf("key field %d", i+1), invalid.Quote(f), "a name of its own")
			}
		}
	}
	if salts < 0 || salts == 1 || salts > maxSalts {
		return invalid.New(ErrInvalid, "salts", fmt.Sprint(salts), "0 for none, or 2 to 100")
	}
	return nil
}

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
