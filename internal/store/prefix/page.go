package prefix

import (
	"context"
	"encoding/binary"

	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

// Page is one page of the points of ByEntity.
type Page struct {
	read  *Read
	scope cursor.Scope
	size  int
}

// OpenPage returns the page of the read that begins behind a cursor, or the first one if it is empty.
func (r *Read) OpenPage(size int, text string) (Page, error) {
	if err := points.CheckPageSize(size); err != nil {
		return Page{}, err
	}
	p := Page{read: r, scope: r.Rows.Scope(cursor.UnderPrefix, r.Prefix), size: size}
	p.scope.Oldest, p.scope.Newest, p.scope.Reverse = r.Oldest, r.Newest, r.Reverse
	r.Most = size + 1
	if text == "" {
		return p, nil
	}
	place, err := r.Rows.Cursors.Read(p.scope, text)
	if err == nil {
		r.After, err = r.place(place)
	}
	return p, err
}

// Read calls visit for each point of the page, and returns the cursor of the next page, or "" after the last one.
func (p *Page) Read(ctx context.Context, visit func(dataset.Hit)) (next string, err error) {
	if p.read.Oldest > p.read.Newest {
		return "", nil
	}
	found, bytes, more := 0, 0, false
	var last Place
	err = p.read.ByEntity(ctx, func(h dataset.Hit) bool {
		bytes += len(h.Payload)
		if more = found == p.size || found > 0 && bytes > points.PageBytes; more {
			return false
		}
		visit(h)
		found++
		last = Place{Path: h.Path, Units: h.Units, ID: h.ID}
		return true
	})
	if err != nil || !more {
		return "", err
	}
	return p.read.Rows.Cursors.Write(p.scope, last.encode()), nil
}

// encode returns a place as the bytes in a cursor: the length of the path, the path, the time and the ID.
func (p Place) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(len(p.Path)))
	b = append(b, p.Path...)
	b = binary.BigEndian.AppendUint64(b, uint64(p.Units))
	return append(b, p.ID...)
}

// place returns the place in a cursor. It refuses places outside of the query, so a forged cursor cannot leave it.
func (r *Read) place(raw []byte) (*Place, error) {
	n, width := binary.Uvarint(raw)
	if width <= 0 || n > uint64(len(raw)-width) || uint64(len(raw)-width)-n < 8 {
		return nil, refused("not in the form of one")
	}
	path, rest := string(raw[width:width+int(n)]), raw[width+int(n):]
	p := &Place{Path: path, Units: int64(binary.BigEndian.Uint64(rest)), ID: string(rest[8:])}
	if !r.Rows.CanHold(r.Prefix, path) || p.Units < r.Oldest || p.Units > r.Newest || r.Rows.Space.CheckID(p.ID) != nil {
		return nil, refused("outside of the query")
	}
	return p, nil
}

func refused(what string) error {
	return invalid.New(cursor.ErrCursor, "cursor", what, "the one that came with a page of the same tenant, dataset, prefix, interval and order")
}
