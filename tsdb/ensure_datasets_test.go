package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func namedSchema(t testing.TB, name string) *tsdb.Schema[string] {
	t.Helper()
	return must[*tsdb.Schema[string]](t)(tsdb.Define(name, tsdb.Key("k"), codec.String(), tsdb.SchemaOptions{}))
}

// TestOneTenantDoesNotFillTheCatalogue: a tenant that creates datasets without end gets no more than its limit, with
// any number of parallel calls and processes. Other tenants continue to create theirs.
func TestOneTenantDoesNotFillTheCatalogue(t *testing.T) {
	const most, attempts = 7, 1000
	noisy, quiet := tenant.MustParse("noisy"), tenant.MustParse("quiet")
	limits := func() *limit.Limiter {
		return must[*limit.Limiter](t)(limit.New(limit.Table{Defaults: limit.Limits{Datasets: most}, Share: 0.5}, limit.Options{}))
	}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: limits()}}, namedSchema(t, "of-the-program"))
	ensure := func(store *tsdb.Store, id tenant.ID, name string) error {
		return store.Ensure(tenant.NewContext(t.Context(), id), namedSchema(t, name))
	}
	refused := func(err error) bool {
		over, ok := errors.AsType[*limit.Error](err)
		return ok && over.ID == limit.Datasets && over.Tenant == noisy && over.Limit == most && over.Used == most+1 && over.RetryAfter == 0
	}
	var wg sync.WaitGroup
	var made atomic.Int64
	for worker := range 8 {
		wg.Go(func() {
			for i := range attempts / 8 {
				switch err := ensure(store, noisy, fmt.Sprintf("n%d-%d", worker, i)); {
				case err == nil:
					made.Add(1)
				case !refused(err):
					t.Errorf("dataset %d of worker %d: %v", i, worker, err)
				}
			}
		})
	}
	for i := range most {
		if err := ensure(store, quiet, fmt.Sprintf("q%d", i)); err != nil {
			t.Errorf("dataset %d of another tenant: %v", i, err)
		}
	}
	wg.Wait()
	if made.Load() != most {
		t.Errorf("the tenant created %d datasets, its limit is %d", made.Load(), most)
	}
	// A second process uses the count of the catalogue.
	client, admin := tsdbtest.Clients(t, conn)
	other := must[*tsdb.Store](t)(tsdb.New(client, tsdbtest.Table, tsdb.Options{StoreOptions: tsdb.StoreOptions{Limits: limits()}, Admin: admin}))
	t.Cleanup(func() { _ = other.Close() })
	if err := ensure(other, noisy, "one-more"); !refused(err) {
		t.Errorf("in a new process: %v, want ErrExceeded", err)
	}
	if err := ensure(other, noisy, "of-the-program"); err != nil {
		t.Errorf("a dataset that exists: %v", err)
	}
	if err := other.Ensure(t.Context(), namedSchema(t, "of-an-operator")); err != nil {
		t.Errorf("a call without a tenant: %v", err)
	}
	// A deletion makes room.
	if err := ensure(other, quiet, "more"); !errors.Is(err, limit.ErrExceeded) {
		t.Errorf("the other tenant, at its limit: %v, want ErrExceeded", err)
	}
	must[tenants.Removal](t)(tenants.Remove(t.Context(), store, tenants.Part{Dataset: "q0"}, tenants.RemoveOptions{Settle: 1}))
	if err := ensure(other, quiet, "more"); err != nil {
		t.Errorf("after one of its datasets was deleted: %v", err)
	}
}

// TestTenantsDoNotWaitForEachOther: while the catalogue write of one tenant hangs, other tenants create their datasets.
// A tenant without a limit does so in several calls at once.
func TestTenantsDoNotWaitForEachOther(t *testing.T) {
	slow, quiet, free := tenant.MustParse("slow"), tenant.MustParse("quiet"), tenant.MustParse("free")
	limits := must[*limit.Limiter](t)(limit.New(limit.Table{
		Defaults: limit.Limits{Datasets: 3}, Overrides: map[tenant.ID]limit.Limits{free: {}},
	}, limit.Options{}))
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: limits}}, namedSchema(t, "of-the-program"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // expires only if a call waits for a tenant that hangs
	defer cancel()
	ensure := func(id tenant.ID, name string) error {
		return store.Ensure(tenant.NewContext(ctx, id), namedSchema(t, name))
	}
	for _, hangs := range []tenant.ID{slow, free} {
		entered, leave := make(chan struct{}), make(chan struct{})
		conn.Inject(tsdbtest.DelayBy(func() time.Duration {
			close(entered)
			<-leave
			return 0
		}).On(tsdbtest.CheckAndMutateRow).Times(1))
		done := make(chan error, 1)
		go func() { done <- ensure(hangs, hangs.String()+"-hangs") }()
		select {
		case <-entered:
		case err := <-done:
			t.Fatalf("the call of tenant %v should hang, but returned: %v", hangs, err)
		}
		for _, id := range []tenant.ID{quiet, free} {
			if err := ensure(id, id.String()+"-while-"+hangs.String()); err != nil {
				t.Errorf("tenant %v, while a call of tenant %v hangs: %v", id, hangs, err)
			}
		}
		close(leave)
		if err := <-done; err != nil {
			t.Errorf("the hanging call of tenant %v: %v", hangs, err)
		}
	}
}

// TestDatasetsOfProfilesAreLimited: a limit in a tenant's profile applies too, and to each of several datasets of one
// call.
func TestDatasetsOfProfilesAreLimited(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{ProfileLimits: true}}, namedSchema(t, "first"))
	must[tenants.Profile](t)(tenants.Onboard(t.Context(), store, acme, tenants.Profile{Limits: []byte(`{"datasets":2}`)}, tenants.OnboardOptions{}))
	ctx := tenant.NewContext(t.Context(), acme)
	for _, tt := range []struct {
		names []string
		used  int64 // 0 if the call is allowed
	}{{[]string{"a", "b", "c"}, 3}, {[]string{"a", "first"}, 0}, {[]string{"b", "a", "c"}, 3}, {[]string{"b"}, 0}, {[]string{"c"}, 3}} {
		var all []tsdb.Dataset
		for _, name := range tt.names {
			all = append(all, namedSchema(t, name))
		}
		err := store.Ensure(ctx, all...)
		over, _ := errors.AsType[*limit.Error](err)
		switch {
		case tt.used == 0 && err != nil:
			t.Errorf("%v: %v", tt.names, err)
		case tt.used > 0 && (over == nil || over.Used != tt.used):
			t.Errorf("%v: %v, want a refusal of dataset %d", tt.names, err, tt.used)
		}
	}
	if err := store.Verify(context.WithoutCancel(ctx), namedSchema(t, "c")); !errors.Is(err, tenancy.ErrSchemaConflict) {
		t.Errorf("a refused dataset: %v", err)
	}
}

// TestAConflictTellsATenantNothing: fields of a dataset that another tenant created are in the error's data, for logs,
// and not in its text, which a program may pass on.
func TestAConflictTellsATenantNothing(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, must[*tsdb.Schema[string]](t)(tsdb.Define("m", tsdb.Key("secret_field"), codec.String(), tsdb.SchemaOptions{})))
	for _, call := range []func(context.Context, ...tsdb.Dataset) error{store.Ensure, store.Verify} {
		for _, ctx := range []context.Context{t.Context(), tenant.NewContext(t.Context(), acme)} {
			err := call(ctx, namedSchema(t, "m"))
			conflict, ok := errors.AsType[*tsdb.ConflictError](err)
			if !ok || !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(strings.Join(conflict.Differences, " "), "secret_field") {
				t.Errorf("data of the error: %v", err)
			}
			_, outside := tenant.FromContext(ctx)
			if strings.Contains(err.Error(), "secret_field") == outside {
				t.Errorf("with a tenant in the context: %v; text %q", outside, err)
			}
		}
	}
}

// TestATenantCreatesTheTable: the table may be created by a call for a tenant with a limit of datasets.
func TestATenantCreatesTheTable(t *testing.T) {
	l := must[*limit.Limiter](t)(limit.New(limit.Table{Defaults: limit.Limits{Datasets: 1}}, limit.Options{}))
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: l}})
	if err := store.Ensure(tenant.NewContext(t.Context(), acme), namedSchema(t, "first")); err != nil {
		t.Fatalf("the first dataset of a table: %v", err)
	}
	if err := store.Ensure(tenant.NewContext(t.Context(), acme), namedSchema(t, "second")); !errors.Is(err, limit.ErrExceeded) {
		t.Errorf("the second dataset: %v, the limit is 1", err)
	}
}
