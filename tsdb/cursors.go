package tsdb

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// parseCursorKeys parses the environment variable's text. Its errors never show the text.
func parseCursorKeys(text string) ([][]byte, error) {
	if text == "" {
		return nil, nil
	}
	const field = "environment variable " + envCursorKeys
	var keys [][]byte
	for one := range strings.SplitSeq(text, ",") {
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(one))
		if err != nil {
			return nil, invalid.New(ErrInvalid, field+", cursor key "+strconv.Itoa(len(keys)+1), "no standard base64",
				strconv.Itoa(cursor.KeySize)+` random bytes, as "openssl rand -base64 `+strconv.Itoa(cursor.KeySize)+`" prints them`)
		}
		keys = append(keys, key)
	}
	if _, err := cursor.NewBox(keys); err != nil {
		if e, ok := errors.AsType[*invalid.Error](err); ok {
			return nil, invalid.New(e.Err, field+", "+e.Field, e.Value, e.Limit)
		}
		return nil, err
	}
	return keys, nil
}

// scope returns what the cursors of Page are bound to. Times are in whole units, so intervals with the same points are equal.
func (r *Repository[T]) scope(e Entity, in Interval, order Order) cursor.Scope {
	oldest, newest, ok := in.units(r.schema.d.Precision)
	if !ok {
		oldest, newest = 1, 0
	}
	kind := cursor.Points
	if r.schema.d.Identity {
		kind = cursor.Events
	}
	return cursor.Scope{
		Kind:      kind,
		Tenant:    r.rows.Tenant.String(),
		Dataset:   r.schema.d.Name,
		Precision: byte(r.schema.d.Precision),
		Path:      e.path,
		Oldest:    oldest,
		Newest:    newest,
		Reverse:   order == OldestFirst,
	}
}
