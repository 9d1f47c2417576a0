package tenancy

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"sync"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/tenant"
)

const (
	viewCut  = 21 // bytes of a tenant's name in the ID of its view: the rest of the service's 50
	viewHash = 16 // bytes of the hash: enough to make collisions infeasible
)

var viewBase = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// ViewID returns the ID of a tenant's authorized view. Package tsdb documents its form.
func ViewID(id tenant.ID) string {
	name := id.String()
	if name == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(name))
	return "t-" + name[:min(len(name), viewCut)] + "-" + viewBase.EncodeToString(sum[:viewHash])
}

// mostViews bounds each of the two generations of open views. Opening one costs some allocations and no I/O, so rarely
// used views may be opened again.
const mostViews = 1000

// Views are a table's authorized views by tenant.
type Views struct {
	open func(viewID string) *bt.Table

	mu          sync.RWMutex
	now, before map[tenant.ID]*bt.Table
}

// OpenViews returns the views of a table. Conditional writes go through cond and bulk reads through bulk; both may be
// the same client as data.
func OpenViews(data, cond, bulk *bigtable.Client, table string, timeouts bt.Timeouts) *Views {
	return &Views{open: func(viewID string) *bt.Table {
		return bt.New(data.OpenAuthorizedView(table, viewID), cond.OpenAuthorizedView(table, viewID), bulk.OpenAuthorizedView(table, viewID), timeouts)
	}}
}

// of returns the table as a tenant may see it. Views used since the current generation began stay open.
func (v *Views) of(id tenant.ID) *bt.Table {
	v.mu.RLock()
	t := v.now[id]
	v.mu.RUnlock()
	if t != nil {
		return t
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if t = v.now[id]; t != nil {
		return t
	}
	if t = v.before[id]; t == nil {
		t = v.open(ViewID(id))
	}
	if v.now == nil || len(v.now) >= mostViews {
		v.now, v.before = make(map[tenant.ID]*bt.Table), v.now
	}
	v.now[id] = t
	return t
}

// noView reports whether an error of the service is about a missing authorized view, not the table.
func noView(err error) bool {
	return status.Code(err) == codes.NotFound && strings.Contains(strings.ToLower(err.Error()), "authorized")
}

// OfView reports whether an error may concern only one tenant's view, in a store that uses views.
func OfView(err error) bool { return noView(err) || status.Code(err) == codes.PermissionDenied }
