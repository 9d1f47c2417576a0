package tsdb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestAStoreThatRequiresATenant: if a request bypassed the edge, its context has no tenant, and no call of a repository
// or a sink may do anything for it.
func TestAStoreThatRequiresATenant(t *testing.T) {
	s, err := tsdb.Define("texts", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{RequireTenant: true, Cache: cached.Cache}}, s)
	repo := s.For(store, acme)
	for name, op := range operations {
		if _, err := op(context.Background(), repo, roof, start); !errors.Is(err, tsdb.ErrNoTenant) {
			t.Errorf("%s without a tenant in the context: %v, want ErrNoTenant", name, err)
		}
	}
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range sinkCalls {
		if err := call(context.Background(), repo.Via(w), roof, start); !errors.Is(err, tsdb.ErrNoTenant) {
			t.Errorf("Sink.%s without a tenant in the context: %v, want ErrNoTenant", name, err)
		}
	}
	if calls := conn.Counts().Calls; len(calls) != 0 {
		t.Errorf("refused calls sent requests: %v", calls)
	}
	own := tenant.NewContext(context.Background(), acme)
	if err := repo.Via(w).Enqueue(own, roof, start, "v"); err != nil {
		t.Errorf("Put with the tenant in its context: %v", err)
	}
	if _, err := repo.Latest(tenant.NewContext(own, tenant.MustParse("acme2")), roof); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("another tenant: %v, want ErrTenantMismatch", err)
	}
	// Calls that concern no tenant need none.
	for name, err := range map[string]error{
		"Flush": w.Flush(context.Background()), "Close": w.Close(context.Background()),
		"Ensure": store.Ensure(context.Background(), s), "Verify": store.Verify(context.Background(), s), "Ping": store.Ping(context.Background()),
	} {
		if err != nil {
			t.Errorf("%s without a tenant in the context: %v", name, err)
		}
	}
	if p, err := repo.Latest(own, roof); err != nil || p.Value != "v" {
		t.Errorf("Latest = %v, %v", p, err)
	}
}

func TestAnEmbeddedStoreThatRequiresATenant(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, err := embedded.New(context.Background(), embedded.Options{StoreOptions: tsdb.StoreOptions{RequireTenant: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := s.For(store, acme).Put(context.Background(), roof, start, reading{}); !errors.Is(err, tsdb.ErrNoTenant) || !errors.Is(err, tsdb.ErrRejected) {
		t.Errorf("a Put without a tenant in the context: %v, want ErrNoTenant and ErrRejected", err)
	}
}

// TestAnotherTenantIsTheFirstError: a call with the context of another tenant says so, also if its arguments are invalid
// too.
func TestAnotherTenantIsTheFirstError(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo, none, early := s.For(store, acme), tsdb.Entity{}, time.Unix(-1, 0)
	turned, fields := tsdb.Between(start, start.Add(-1)), tsdb.FieldOptions{MaxPoints: -1}
	under := repo.Under(tsdb.Prefix{})
	for name, call := range map[string]func(context.Context) error{
		"Put":                func(ctx context.Context) error { return repo.Put(ctx, none, early, reading{}) },
		"PutIfAbsent":        func(ctx context.Context) error { return second(repo.PutIfAbsent(ctx, none, early, reading{})) },
		"PutMany":            func(ctx context.Context) error { return second(repo.PutMany(ctx, make([]tsdb.Point[reading], 1))) },
		"Get":                func(ctx context.Context) error { return second(repo.Get(ctx, none, early)) },
		"AsOf":               func(ctx context.Context) error { return second(repo.AsOf(ctx, roof, early)) },
		"LatestN":            func(ctx context.Context) error { return second(repo.LatestN(ctx, roof, -1)) },
		"LatestMany":         func(ctx context.Context) error { return second(repo.LatestMany(ctx, nil, -1)) },
		"LatestFields":       func(ctx context.Context) error { return second(repo.LatestFields(ctx, roof, fields)) },
		"LatestFieldsMany":   func(ctx context.Context) error { return second(repo.LatestFieldsMany(ctx, nil, fields)) },
		"Page":               func(ctx context.Context) error { return second(repo.Page(ctx, roof, turned, -1, "x")) },
		"Range":              func(ctx context.Context) error { return firstError(repo.Range(ctx, roof, turned)) },
		"Delete":             func(ctx context.Context) error { return repo.Delete(ctx, none, early) },
		"DeleteRange":        func(ctx context.Context) error { return second(repo.DeleteRange(ctx, roof, turned)) },
		"DeletePrefix":       func(ctx context.Context) error { return second(repo.DeletePrefix(ctx, tsdb.Prefix{})) },
		"Under.Range":        func(ctx context.Context) error { return firstError(under.Range(ctx, turned)) },
		"Under.LatestN":      func(ctx context.Context) error { return firstError(under.LatestN(ctx, -1)) },
		"Under.LatestFields": func(ctx context.Context) error { return firstError(under.LatestFields(ctx, fields)) },
		"Under.Silent":       func(ctx context.Context) error { return second(under.Silent(ctx, start, -1)) },
		"Under.Page":         func(ctx context.Context) error { return second(under.Page(ctx, turned, -1, "x")) },
		"Under.PageEntities": func(ctx context.Context) error { return second(under.PageEntities(ctx, -1, "x")) },
	} {
		if err := call(tenant.NewContext(t.Context(), tenant.MustParse("acme2"))); !errors.Is(err, tsdb.ErrTenantMismatch) {
			t.Errorf("%s: %v, want ErrTenantMismatch", name, err)
		}
		if err := call(t.Context()); !errors.Is(err, tsdb.ErrInvalid) && !errors.Is(err, tsdb.ErrNotFound) {
			t.Errorf("%s with its own tenant: %v, want ErrInvalid", name, err)
		}
	}
	if calls := conn.Counts().Calls; len(calls) != 0 {
		t.Errorf("refused calls sent requests: %v", calls)
	}
}
