package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var acme2 = tenant.MustParse("acme2")

func hostileViews() (ids []tenant.ID) {
	for _, name := range hostileTenants {
		ids = append(ids, tenant.MustParse(name))
	}
	return ids
}

// TestViewIDs: a view's ID is valid for the service, differs between tenants, and never changes, because access rights
// refer to it.
func TestViewIDs(t *testing.T) {
	valid := regexp.MustCompile(`^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,49}$`)
	names := slices.Concat(hostileTenants, []string{"-", "..a", strings.Repeat("x", 64), strings.Repeat("x", 63) + "y", strings.Repeat("x", 63), "Acme"})
	seen := map[string]string{}
	for _, name := range names {
		id := tsdb.ViewID(tenant.MustParse(name))
		if !valid.MatchString(id) {
			t.Errorf("the view of %q is %q, which is not a valid ID", name, id)
		}
		if other, ok := seen[strings.ToLower(id)]; ok {
			t.Errorf("%q and %q share the view %q", name, other, id)
		}
		seen[strings.ToLower(id)] = name
	}
	for name, want := range map[string]string{
		"acme":                  "t-acme-g8lj7bc7o54a18gabejsqnlsl8",
		strings.Repeat("x", 64): "t-xxxxxxxxxxxxxxxxxxxxx-fjgg15ovcjjg07kfsmihisvcrs",
	} {
		if got := tsdb.ViewID(tenant.MustParse(name)); got != want {
			t.Errorf("the view of %q is %q, want %q: IDs must not change", name, got, want)
		}
	}
	if got := tsdb.ViewID(tenant.ID{}); got != "" {
		t.Errorf("the zero tenant has the view %q, want none", got)
	}
}

// watch records which view, or the table, each data request uses.
type watch struct {
	mu    sync.Mutex
	views map[string]int // requests by the full name of their view
	bare  []string       // requests that use the table itself
}

func (w *watch) note(m any) {
	req, ok := m.(interface {
		GetTableName() string
		GetAuthorizedViewName() string
	})
	if !ok {
		return // an admin request, or one of the client itself
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.views == nil {
		w.views = map[string]int{}
	}
	if view := req.GetAuthorizedViewName(); view != "" && req.GetTableName() == "" {
		w.views[view]++
		return
	}
	w.bare = append(w.bare, fmt.Sprintf("%T", m))
}

// seen returns the IDs of the views and the requests to the table since the last call.
func (w *watch) seen() (views, bare []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.views {
		_, id, _ := strings.Cut(name, "/authorizedViews/")
		views = append(views, id)
	}
	bare = w.bare
	w.views, w.bare = nil, nil
	return views, bare
}

func (w *watch) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			w.note(req)
			return invoker(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := streamer(ctx, desc, cc, name, opts...)
			if bt.Upkeep(ctx) {
				return s, err // for the store's own rows
			}
			return &watched{s, w}, err
		}),
	}
}

type watched struct {
	grpc.ClientStream
	watch *watch
}

func (s *watched) SendMsg(m any) error {
	s.watch.note(m)
	return s.ClientStream.SendMsg(m)
}

// TestEachCallGoesThroughItsTenantsView: with views, no call of a repository or a sink, in any kind of dataset, uses
// the table itself or another tenant's view. There the service would not stop a call with wrong keys.
func TestEachCallGoesThroughItsTenantsView(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"points":     {},
		"salted":     {Salts: 3},
		"first wins": {FirstWins: true},
		"heads":      {Head: tsdb.Head{Points: kept}},
		"heads only": {Head: tsdb.Head{Points: kept, Only: true}},
		"both":       {Head: tsdb.Head{Points: kept}, FirstWins: true, Salts: 3},
	} {
		t.Run(name, func(t *testing.T) {
			opts.Precision, opts.Retention = tsdb.Milliseconds, d90
			s, err := tsdb.Define("r", tsdb.Key("site", "device"), codec.String(), opts)
			if err != nil {
				t.Fatal(err)
			}
			w := &watch{}
			store, _ := tsdbtest.Open(t, tsdbtest.Options{
				StoreOptions: tsdb.StoreOptions{Clock: testkit.NewClock(start.Add(time.Hour)).Now, Cache: cached.Cache},
				ViewsFor:     []tenant.ID{acme, acme2},
				DialOptions:  w.options(),
			}, s)
			fillViews := func(id tenant.ID) {
				for _, parts := range hostileEntities {
					for n := range 2 {
						err := s.For(store, id).Put(t.Context(), tsdb.NewEntity(parts...), start.Add(-time.Duration(n)*time.Minute), label(id.String(), "r", parts))
						if err != nil && !errors.Is(err, tsdb.ErrExists) {
							t.Fatal(err)
						}
					}
				}
			}
			for call, op := range operations {
				for _, id := range []tenant.ID{acme, acme2} {
					fillViews(id)
					w.seen()
					if _, err := op(t.Context(), s.For(store, id), tsdb.NewEntity(hostileEntities[0]...), start); err != nil && !errors.Is(err, tsdb.ErrExists) {
						t.Fatalf("%s: %v", call, err)
					}
					views, bare := w.seen()
					if len(bare) > 0 {
						t.Errorf("%s of %s used the table: %v", call, id, bare)
					}
					if want := []string{tsdb.ViewID(id)}; !slices.Equal(views, want) {
						t.Errorf("%s of %s used the views %v, want %v", call, id, views, want)
					}
				}
			}
			if err := store.Verify(t.Context(), s); err != nil {
				t.Error(err)
			}
			if _, bare := w.seen(); len(bare) == 0 {
				t.Error("no request for the store's own rows was recorded, so the test proves nothing")
			}
		})
	}
}

// TestTheTableIsForTheStoresOwnRows: the packages that read and write points use the table itself, past all views, in
// few places. Whatever is new uses Rows, or is listed here because it reads rows of no tenant.
func TestTheTableIsForTheStoresOwnRows(t *testing.T) {
	var files []string
	for _, dir := range []string{".", "../internal/store/points", "../internal/store/skipscan", "../internal/store/prefix", "../internal/store/follow"} {
		files = append(files, must[[]string](t)(filepath.Glob(dir+"/*.go"))...)
	}
	uses := map[string]int{}
	for _, name := range files {
		text := string(must[[]byte](t)(os.ReadFile(name)))
		if n := strings.Count(text, "core.Whole") + strings.Count(text, "able.Whole") + strings.Count(text, "r.Whole"); n > 0 && !strings.HasSuffix(name, "_test.go") {
			uses[name] = n
		}
	}
	if want := map[string]int{"ensure.go": 1, "sink.go": 1, "store.go": 2, "writer.go": 1}; !maps.Equal(uses, want) {
		t.Errorf("files that reach past the views: %v, want %v", uses, want)
	}
}

// TestLongCallsGoThroughTheirView: calls with many requests, and merges with heads, use the view too.
func TestLongCallsGoThroughTheirView(t *testing.T) {
	s := merging(t, tsdb.SchemaOptions{Head: tsdb.Head{Points: kept}, Precision: tsdb.Milliseconds})
	plain := tsdb.MustDefine("p", tsdb.Key("device"), codec.String(), tsdb.SchemaOptions{})
	w := &watch{}
	store, _ := tsdbtest.Open(t, tsdbtest.Options{ViewsFor: []tenant.ID{acme, acme2}, DialOptions: w.options()}, s, plain)
	w.seen()
	repo := s.For(store, acme)
	for i := range 3 {
		if err := repo.Put(t.Context(), roof, start, rec(fmt.Sprint("f", i), int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	var points []tsdb.Point[string]
	for i := range 300 {
		for k := range 30 {
			points = append(points, tsdb.Point[string]{Entity: tsdb.NewEntity(fmt.Sprintf("d%03d", i)), Time: start.Add(time.Duration(k) * time.Second), Value: "x"})
		}
	}
	if _, err := plain.For(store, acme).PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range plain.For(store, acme).Under(tsdb.AllEntities()).Latest(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	views, bare := w.seen()
	if n != 300 || len(bare) > 0 || !slices.Equal(views, []string{tsdb.ViewID(acme)}) {
		t.Errorf("%d entities; %d requests to the table, want 0; views %v", n, len(bare), views)
	}
}

// TestManyTenantsThroughViews: more tenants than a store keeps open views for, in and out of order.
func TestManyTenantsThroughViews(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	w := &watch{}
	store, _ := tsdbtest.Open(t, tsdbtest.Options{ViewsFor: []tenant.ID{acme}, DialOptions: w.options()}, s)
	for i := range 2500 {
		id := tenant.MustParse(fmt.Sprint("t", i))
		if i%100 == 0 {
			w.seen()
			if _, err := s.For(store, id).Latest(t.Context(), roof); !errors.Is(err, tsdb.ErrNoView) {
				t.Fatal(err)
			}
			if views, _ := w.seen(); !slices.Equal(views, []string{tsdb.ViewID(id)}) {
				t.Fatalf("%v used the views %v", id, views)
			}
		}
		if _, err := s.For(store, acme).Latest(t.Context(), roof); i%50 == 0 && !errors.Is(err, tsdb.ErrNotFound) {
			t.Fatal(err)
		}
		s.For(store, id)
	}
}
