package points

import (
	"context"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// A page ends early, and another one follows, if its payloads would be more bytes than PageBytes together.
const (
	maxPage   = 10_000
	PageBytes = 32 << 20
)

// CheckPageSize refuses a page that is too large or empty.
func CheckPageSize(size int) error {
	if size < 1 || size > maxPage {
		return invalid.New(dataset.ErrInvalid, "size", strconv.Itoa(size), "1 to "+strconv.Itoa(maxPage))
	}
	return nil
}

// Scope returns what the cursors of a query of these rows are bound to.
func (r *Rows) Scope(kind cursor.Kind, path string) cursor.Scope {
	return cursor.Scope{Kind: kind, Tenant: r.Tenant.String(), Dataset: r.D.Name, Precision: byte(r.D.Precision), Path: path}
}

// CanHold reports whether the path can be that of an entity under the prefix. A forged cursor must not leave the
// prefix. Stored entities may have parts of other kinds than the schema declares.
func (r *Rows) CanHold(prefix, path string) bool {
	under := prefix == "" || strings.HasPrefix(path, prefix+"#")
	return under && r.Space.WithKinds(nil).CheckPath(path) == nil && rowkey.Path(rowkey.Parts(path)...) == path
}

// Page is one page of a span.
type Page struct {
	rows  *Rows
	span  Span
	scope cursor.Scope
	size  int
}

// OpenPage returns the page of a span that begins behind a cursor, or the first one if it is empty.
func (r *Rows) OpenPage(s Span, size int, text string) (Page, error) {
	if err := CheckPageSize(size); err != nil {
		return Page{}, err
	}
	p := Page{rows: r, span: s, scope: r.Scope(cursor.Points, s.Path), size: size}
	if r.D.Identity {
		p.scope.Kind = cursor.Events
	}
	p.scope.Oldest, p.scope.Newest, p.scope.Reverse = s.Oldest, s.Newest, s.Reverse
	p.span.Limit = size + 1
	if text != "" {
		return p, p.resume(text)
	}
	return p, nil
}

// resume moves the start of the span behind the cursor.
func (p *Page) resume(text string) error {
	s := &p.span
	if p.scope.Kind == cursor.Events {
		at, id, err := p.rows.Cursors.ReadEvent(p.scope, text)
		if err == nil {
			s.After = p.rows.Key(s.Path, at, id) // other points of this time may follow
		}
		return err
	}
	at, err := p.rows.Cursors.ReadTime(p.scope, text)
	switch {
	case err != nil:
		return err
	case !s.Reverse:
		s.Newest = at - 1
	case at == s.Newest: // at+1 may overflow
		s.Oldest, s.Newest = 1, 0
	default:
		s.Oldest = at + 1
	}
	return nil
}

// Read calls visit for each point of the page, and returns the cursor of the next page, or "" after the last one.
func (p *Page) Read(ctx context.Context, visit func(dataset.Hit)) (next string, err error) {
	found, bytes, more := 0, 0, false
	var last dataset.Hit
	err = p.rows.Scan(ctx, p.span, func(f *Found) bool {
		bytes += len(f.Payload)
		if more = found == p.size || found > 0 && bytes > PageBytes; more {
			return false
		}
		visit(f.Hit)
		found++
		last.Units, last.ID = f.Units, f.ID
		return true
	})
	if err != nil || !more {
		return "", err
	}
	return p.rows.Cursors.WriteEvent(p.scope, last.Units, last.ID), nil
}
