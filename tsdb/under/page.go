package under

import (
	"context"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/below"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
)

// maxPageBytes ends a page early, before its payloads are more.
const maxPageBytes = 32 << 20

// Page returns one page of the points of [Range]. An empty cursor means the first page; the Next of a page continues after it.
// size is 1 to 10,000 points and may differ from page to page. A page is shorter at the end, or if its payloads would exceed
// 32 MiB. Only an empty Next means that there are no more points.
//
// A cursor marks the last point of its page, as that of Repository.Page does, and is valid only for Page and the tenant, dataset,
// prefix, interval and order of its page; otherwise the error is tsdb.ErrCursor. With CursorKeys in tsdb.StoreOptions it is
// sealed. Without keys it shows the key of the last point, and a forged cursor can start a page elsewhere in the same query.
//
// A point whose payload does not decode keeps its place, with a zero value; the error is then tsdb.PointErrors, and the page
// and its Next are valid. For any other error there is no page. It costs what Range costs for the points of the page and one
// more, and a request for the rest of the entity at which the page before has ended. Entities without points in the interval
// are skipped at the cost of Range, whatever the size. A tsdb.Limit is refused with ErrInvalid.
func Page[T any](ctx context.Context, repo *tsdb.Repository[T], p tsdb.Prefix, in tsdb.Interval, size int, text string, opts ...tsdb.ReadOption) (page tsdb.Page[T], err error) {
	if err := refuseLimit(opts); err != nil {
		return page, err
	}
	ctx, c, err := begin(ctx, repo, telemetry.UnderPage, p, in, opts, false)
	defer func() {
		c.op.Returned(len(page.Points))
		c.end(err)
	}()
	if err != nil {
		return page, err
	}
	if size < 1 || size > most {
		return page, invalid.New(ErrInvalid, "size", strconv.Itoa(size), "1 to "+strconv.Itoa(most))
	}
	c.Scope.Kind = cursor.Below
	if text != "" {
		if c.After, err = c.place(text); err != nil {
			return page, err
		}
	}
	points := []tsdb.Point[T]{} // not null in JSON
	var bad tsdb.PointErrors
	var last dataset.Hit
	bytes, more := 0, false
	if c.Oldest <= c.Newest {
		c.Most = size + 1
		err = c.ByEntity(ctx, func(h dataset.Hit) bool {
			bytes += len(h.Payload)
			if more = len(points) == size || len(points) > 0 && bytes > maxPageBytes; more {
				return false
			}
			point, wrong := c.Decode(h)
			points = append(points, point)
			if wrong, ok := wrong.(*tsdb.PointError); ok {
				bad = append(bad, wrong)
			}
			last = h
			return true
		})
	}
	if err != nil {
		return tsdb.Page[T]{}, err
	}
	page.Points = points
	if more {
		page.Next = c.Cursors.Write(c.Scope, encode(below.Place{Path: last.Path, Units: last.Units, ID: last.ID}))
	}
	if bad != nil {
		return page, bad
	}
	return page, nil
}

// encode returns a place as the bytes in a cursor: the length of the path, the path, the time and the ID.
func encode(p below.Place) []byte {
	b := binary.AppendUvarint(nil, uint64(len(p.Path)))
	b = append(b, p.Path...)
	b = binary.BigEndian.AppendUint64(b, uint64(p.Units))
	return append(b, p.ID...)
}

// place returns the place in a cursor. It refuses places outside of the query, so a forged cursor cannot leave it.
func (c *call[T]) place(text string) (*below.Place, error) {
	raw, err := c.Cursors.Read(c.Scope, text)
	if err != nil {
		return nil, err
	}
	n, width := binary.Uvarint(raw)
	if width <= 0 || n > uint64(len(raw)-width) || uint64(len(raw)-width)-n < 8 {
		return nil, c.refused("not in the form of one")
	}
	path, rest := string(raw[width:width+int(n)]), raw[width+int(n):]
	p := &below.Place{Path: path, Units: int64(binary.BigEndian.Uint64(rest)), ID: string(rest[8:])}
	under := c.Prefix == "" || strings.HasPrefix(path, c.Prefix+"#")
	switch rows := c.Rows; {
	case !under || p.Units < c.Oldest || p.Units > c.Newest,
		rows.Space.WithKinds(nil).CheckPath(path) != nil || rowkey.Path(rowkey.Parts(path)...) != path,
		rows.Space.CheckID(p.ID) != nil:
		return nil, c.refused("outside of the query")
	}
	return p, nil
}

func (c *call[T]) refused(what string) error {
	return invalid.New(cursor.ErrCursor, "cursor", what, "the one that came with a page of the same tenant, dataset, prefix, interval and order")
}
