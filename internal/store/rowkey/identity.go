package rowkey

import (
	"fmt"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// In a dataset whose points have an identity, an id follows the time in the key of a point:
//
//	<tenant>#<dataset>#[<salt>#]<part>#…#<part>#<reverse time>#<id>
//
// An id contains no delimiter, so the last delimiter separates it from the time. Points with the same time are ordered
// by id.

// MaxID is the largest length of an id in bytes.
const MaxID = 64

// WithIdentity returns s with or without ids at the end of points' keys. Keys of other kinds never have ids.
func (s Space) WithIdentity(on bool) Space {
	s.identity = on
	return s
}

// Identity reports whether keys of points end with an id.
func (s Space) Identity() bool { return s.identity }

// CheckID returns an error if the id of a point in s is invalid. It must be empty if points have no identity.
func (s Space) CheckID(id string) error {
	switch {
	case !s.identity && id != "":
		return invalid.New(ErrInvalid, "id", invalid.Quote(id), "empty: the dataset has no Identity")
	case s.identity && !validID(id):
		return invalid.New(ErrInvalid, "id", invalid.Quote(id), fmt.Sprintf("1 to %d bytes of A-Z a-z 0-9 . _ - :, as points of the dataset have an identity", MaxID))
	}
	return nil
}

func validID(id string) bool {
	if id == "" || len(id) > MaxID {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !invalid.NameByte(c) && c != ':' {
			return false
		}
	}
	return true
}

// AppendEvent appends the key of the point of the entity at path with that time and id. All have passed their checks.
func (s Space) AppendEvent(dst []byte, path string, units int64, id string) []byte {
	dst = s.AppendPoint(dst, path, units)
	if s.identity {
		dst = append(append(dst, delim), id...)
	}
	return dst
}

// SplitEvent is Split, but also returns the id of the point; it is empty if points have none.
func (s Space) SplitEvent(key string) (path string, units int64, id string, ok bool) {
	key, id, ok = cutID(key, s.identity)
	if !ok {
		return "", 0, "", false
	}
	path, units, ok = s.split(key)
	return path, units, id, ok
}

// cutID removes the id from a key, if points have ids. It returns false if the key does not end with a valid id.
func cutID(key string, identity bool) (timed, id string, ok bool) {
	if !identity {
		return key, "", true
	}
	cut := strings.LastIndexByte(key, delim)
	if cut < 0 || !validID(key[cut+1:]) {
		return key, "", false
	}
	return key[:cut], key[cut+1:], true
}

// PointTime returns the time, in units, and the id of a point. key must be entity, as AppendEntity returned it in s,
// followed by what AppendEvent adds. It returns false for any other key.
func (s Space) PointTime(key, entity string) (units int64, id string, ok bool) {
	rest, ok := strings.CutPrefix(key, entity)
	if !ok {
		return 0, "", false
	}
	if rest, id, ok = cutID(rest, s.identity); !ok {
		return 0, "", false
	}
	units, ok = parseReverse(rest)
	return units, id, ok
}

// EntityPrefix returns the common prefix of the keys of an entity's points: the beginning of one of them, whose path
// Split returned.
func (s Space) EntityPrefix(key, path string) string {
	n := len(s.prefix) + len(path) + 1
	if s.salts > 0 {
		n += saltLen
	}
	return key[:n]
}
