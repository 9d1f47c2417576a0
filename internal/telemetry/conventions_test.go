package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/dbconv"
	"go.opentelemetry.io/otel/trace"
	grpccodes "google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/proof/calls"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// examples has a successful call of each operation.
var examples = map[telemetry.Name]func(context.Context, *world) error{
	telemetry.Put: func(ctx context.Context, w *world) error { return w.repo.Put(ctx, roof, w.base, 1) },
	telemetry.PutIfAbsent: func(ctx context.Context, w *world) error {
		_, err := w.repo.PutIfAbsent(ctx, roof, w.base, 1)
		return err
	},
	telemetry.Get:     func(ctx context.Context, w *world) error { return second(w.repo.Get(ctx, roof, w.base)) },
	telemetry.Latest:  func(ctx context.Context, w *world) error { return second(w.repo.Latest(ctx, roof)) },
	telemetry.LatestN: func(ctx context.Context, w *world) error { return second(w.repo.LatestN(ctx, roof, 3)) },
	telemetry.AsOf:    func(ctx context.Context, w *world) error { return second(w.repo.AsOf(ctx, roof, w.base)) },
	telemetry.Range: func(ctx context.Context, w *world) error {
		return last(w.repo.Range(ctx, roof, tsdb.AllTime()))
	},
	telemetry.Page: func(ctx context.Context, w *world) error {
		return second(w.repo.Page(ctx, roof, tsdb.AllTime(), 2, ""))
	},
	telemetry.LatestMany: func(ctx context.Context, w *world) error {
		return second(w.repo.LatestMany(ctx, []tsdb.Entity{roof, tsdb.NewEntity("berlin", "none")}, 1))
	},
	telemetry.UnderLatest: func(ctx context.Context, w *world) error {
		return last(w.repo.Under(tsdb.AllEntities()).Latest(ctx))
	},
	telemetry.UnderPageLatest: func(ctx context.Context, w *world) error {
		return second(w.repo.Under(tsdb.AllEntities()).PageLatest(ctx, 2, ""))
	},
	telemetry.UnderPageEntities: func(ctx context.Context, w *world) error {
		return second(w.repo.Under(tsdb.AllEntities()).PageEntities(ctx, 2, ""))
	},
	telemetry.UnderRange: func(ctx context.Context, w *world) error {
		return last(w.repo.Under(tsdb.AllEntities()).Range(ctx, tsdb.AllTime()))
	},
	telemetry.UnderMerged: func(ctx context.Context, w *world) error {
		return last(w.repo.Under(tsdb.AllEntities()).Merged(ctx, tsdb.AllTime()))
	},
	telemetry.UnderPage: func(ctx context.Context, w *world) error {
		return second(w.repo.Under(tsdb.AllEntities()).Page(ctx, tsdb.AllTime(), 2, ""))
	},
	telemetry.LatestFields: func(ctx context.Context, w *world) error {
		return second(w.repo.LatestFields(ctx, roof, tsdb.FieldOptions{}))
	},
	telemetry.LatestFieldsMany: func(ctx context.Context, w *world) error {
		return second(w.repo.LatestFieldsMany(ctx, []tsdb.Entity{roof, tsdb.NewEntity("berlin", "none")}, tsdb.FieldOptions{}))
	},
	telemetry.UnderLatestFields: func(ctx context.Context, w *world) error {
		return last(w.repo.Under(tsdb.AllEntities()).LatestFields(ctx, tsdb.FieldOptions{}))
	},
	telemetry.UnderLatestN: func(ctx context.Context, w *world) error {
		return last(w.repo.Under(tsdb.AllEntities()).LatestN(ctx, 3))
	},
	telemetry.UnderSilent: func(ctx context.Context, w *world) error {
		return second(w.repo.Under(tsdb.AllEntities()).Silent(ctx, w.base.Add(time.Hour), 3))
	},
	telemetry.WindowGroups: func(ctx context.Context, w *world) error {
		byHour, err := window.New(window.Every(time.Hour), []window.Measure[float64]{{Name: "v", Of: func(v float64) (float64, bool) { return v, true }}}, window.Options{})
		if err != nil {
			return err
		}
		return last(byHour.ReadGroups(ctx, w.repo.Under(tsdb.AllEntities()), 0, tsdb.Between(w.base, w.base.Add(time.Hour))))
	},
	telemetry.FollowOpen: func(ctx context.Context, w *world) error {
		f, err := w.repo.Under(tsdb.AllEntities()).Follow(ctx, tsdb.FollowOptions{})
		return errors.Join(err, f.Close())
	},
	telemetry.UnderChildren: func(ctx context.Context, w *world) error {
		return last(w.repo.Under(tsdb.AllEntities()).Children(ctx))
	},
	telemetry.UnderEntities: func(ctx context.Context, w *world) error {
		return last(w.repo.Under(tsdb.AllEntities()).Entities(ctx, tsdb.AllTime()))
	},
	telemetry.FollowPoll: func(ctx context.Context, w *world) error {
		f, err := w.repo.Follow(ctx, roof, tsdb.FollowOptions{Since: w.base})
		if err != nil {
			return err
		}
		for _, err = range f.Points(ctx) {
			break
		}
		return errors.Join(err, f.Close())
	},
	telemetry.Delete: func(ctx context.Context, w *world) error { return w.repo.Delete(ctx, roof, w.base) },
	telemetry.DeleteRange: func(ctx context.Context, w *world) error {
		return second(w.repo.DeleteRange(ctx, roof, tsdb.Until(w.base.Add(time.Minute))))
	},
	telemetry.DeletePrefix: func(ctx context.Context, w *world) error {
		return second(w.repo.DeletePrefix(ctx, tsdb.AllEntities()))
	},
	telemetry.Deliver: func(ctx context.Context, w *world) error {
		writer, err := w.store.NewWriter(tsdb.WriterOptions{})
		if err != nil {
			return err
		}
		return errors.Join(w.repo.Via(writer).Enqueue(ctx, roof, w.base, 1), writer.Close(ctx))
	},
	telemetry.Ping:       func(ctx context.Context, w *world) error { return w.store.Ping(ctx) },
	telemetry.Ensure:     func(ctx context.Context, w *world) error { return w.store.Ensure(ctx, schema) },
	telemetry.EnsureView: func(ctx context.Context, w *world) error { return w.store.EnsureView(ctx, acme, schema) },
	telemetry.Verify:     func(ctx context.Context, w *world) error { return w.store.Verify(ctx, schema) },
	telemetry.Datasets:   func(ctx context.Context, w *world) error { return last(w.store.Datasets(ctx)) },
	telemetry.Upkeep: func(ctx context.Context, w *world) error {
		_, _ = tsdbtest.Open(w, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Telemetry: w.watch}}, schema) // reads erasure marks in the background
		return nil
	},
	telemetry.RollupAdd: func(ctx context.Context, w *world) error {
		return rollup.NewAdder(once, w.repo, nil).Add(ctx, roof, w.base, 1)
	},
	telemetry.RollupBuckets: func(ctx context.Context, w *world) error {
		return last(rollup.For(hour, w.repo).Buckets(ctx, roof, tsdb.AllTime(), tsdb.OldestFirst))
	},
	telemetry.RollupLatest: func(ctx context.Context, w *world) error {
		return second(rollup.For(hour, w.repo).Latest(ctx, roof, 1))
	},
	telemetry.RollupMany: func(ctx context.Context, w *world) error {
		return second(rollup.For(hour, w.repo).Many(ctx, []tsdb.Entity{roof}, tsdb.AllTime(), tsdb.OldestFirst))
	},
	telemetry.RollupTotal: func(ctx context.Context, w *world) error {
		return second(rollup.For(hour, w.repo).Total(ctx, roof, tsdb.AllTime()))
	},
	telemetry.RollupEntities: func(ctx context.Context, w *world) error {
		return last(rollup.For(hour, w.repo).Entities(ctx, tsdb.AllEntities()))
	},
	telemetry.RollupRebuild: func(ctx context.Context, w *world) error {
		return second(rollup.For(hour, w.repo).Rebuild(ctx, tsdb.AllTime(), rollup.RebuildOptions{}))
	},
	telemetry.RollupPass: func(ctx context.Context, w *world) error {
		worker, err := rollup.NewWorker(w.store, rollup.WorkerOptions{}, schema)
		if err != nil {
			return err
		}
		return second(worker.Pass(ctx))
	},
	telemetry.TenantOnboard: func(ctx context.Context, w *world) error {
		return second(tenants.Onboard(ctx, w.store, acme, tenants.Profile{}, tenants.OnboardOptions{}))
	},
	telemetry.TenantList: func(ctx context.Context, w *world) error {
		return last(tenants.List(ctx, w.store, tenants.ListOptions{}))
	},
	telemetry.TenantProfile: func(ctx context.Context, w *world) error {
		return second(tenants.Load(ctx, w.store, acme))
	},
	telemetry.TenantUsage: func(ctx context.Context, w *world) error {
		return second(tenants.Usage(ctx, w.store, acme, tenants.UsageOptions{}))
	},
	telemetry.TenantErase: func(ctx context.Context, w *world) error {
		return second(tenants.Erase(ctx, w.store, acme, tenants.EraseOptions{DryRun: true}))
	},
	telemetry.TenantReadmit: func(ctx context.Context, w *world) error { return tenants.Readmit(ctx, w.store, acme) },
	telemetry.DatasetRemove: func(ctx context.Context, w *world) error {
		return second(tenants.Remove(ctx, w.store, tenants.Part{Dataset: schema.Name()}, tenants.RemoveOptions{DryRun: true}))
	},
	telemetry.TransferExport: func(ctx context.Context, w *world) error {
		return second(transfer.Export(ctx, w.store, acme, io.Discard, transfer.ExportOptions{}))
	},
	telemetry.TransferImport: func(ctx context.Context, w *world) error {
		var file bytes.Buffer
		other, _ := tsdbtest.Open(w, tsdbtest.Options{}, schema)
		if err := schema.For(other, acme).Put(ctx, roof, w.base, 1); err != nil {
			return err
		}
		if _, err := transfer.Export(ctx, other, acme, &file, transfer.ExportOptions{}); err != nil {
			return err
		}
		return second(transfer.Import(ctx, w.store, acme, &file, transfer.ImportOptions{}))
	},
	telemetry.RetentionPlan: func(ctx context.Context, w *world) error { return second(retention.NewPlan(ctx, w.store, schema)) },
	telemetry.RetentionApply: func(ctx context.Context, w *world) error {
		other, _ := tsdbtest.Open(w, tsdbtest.Options{}, schema)
		plan, err := retention.NewPlan(ctx, other, schema)
		if err != nil {
			return err
		}
		return second(plan.Apply(ctx, w.store, retention.ApplyOptions{}))
	},
}

func second[T any](_ T, err error) error { return err }

// last returns the error of a sequence.
func last[T any](seq func(func(T, error) bool)) (err error) {
	for _, err = range seq {
		if err != nil {
			return err
		}
	}
	return nil
}

// absent are the operations above that find nothing, which is not an error.
var absent = []telemetry.Name{telemetry.TenantProfile, telemetry.TenantReadmit}

// rows is how many rows the reads above return. Nothing is stored of the rollups, so rollup.Entities returns none.
var rows = map[telemetry.Name]float64{
	telemetry.Get: 1, telemetry.Latest: 1, telemetry.LatestN: 3, telemetry.AsOf: 1, telemetry.Range: 10, telemetry.Page: 2, telemetry.LatestMany: 1,
	telemetry.LatestFields: 1, telemetry.LatestFieldsMany: 1, telemetry.UnderLatestFields: 1,
	telemetry.UnderLatest: 1, telemetry.UnderPageLatest: 1, telemetry.UnderPageEntities: 1,
	telemetry.UnderRange: 10, telemetry.UnderMerged: 10, telemetry.UnderPage: 2, telemetry.UnderLatestN: 3, telemetry.UnderSilent: 1, telemetry.WindowGroups: 1, telemetry.UnderChildren: 1, telemetry.UnderEntities: 1, telemetry.FollowPoll: 10, telemetry.RollupBuckets: 1, telemetry.RollupLatest: 1, telemetry.RollupMany: 1,
	telemetry.RollupTotal: 1, telemetry.TenantList: 1, telemetry.Datasets: 1, telemetry.TransferExport: 10,
}

// TestEveryCallIsObserved checks that each public call that reads or writes data reports an operation with an example
// here, and that each operation belongs to a public call or to the store's background work.
func TestEveryCallIsObserved(t *testing.T) {
	of := map[string]bool{telemetry.Upkeep.String(): true}
	for _, c := range calls.List {
		of[c.Operation] = true
	}
	for name := range telemetry.Operations {
		if !of[name.String()] {
			t.Errorf("no call in internal/proof/calls has the operation %s", name)
		}
		delete(of, name.String())
	}
	delete(of, "")
	for name := range of {
		t.Errorf("a call in internal/proof/calls has the unknown operation %s", name)
	}
	for _, c := range calls.List {
		if c.Operation == "" && c.Free == "" && !slices.Contains(unobserved, c.Name()) {
			t.Errorf("%s reads or writes data and has no operation: name it in internal/proof/calls", c.Name())
		}
	}
}

// unobserved are calls that report only the operations that they consist of.
var unobserved = []string{
	"dynamic.Open", "dynamic.View.Points", "dynamic.View.Put", "dynamic.FieldsOf", "dynamic.RecordFields",
	"window.Aggregator.Read", "window.Aggregator.ReadGroup", "window.Outages", "window.ReadUptime", "window.Align",
	"window.ReadLine",
}

// TestEachOperationInSuccess checks the span and the metrics of each operation against the conventions.
func TestEachOperationInSuccess(t *testing.T) {
	for name := range telemetry.Operations {
		t.Run(name.String(), func(t *testing.T) {
			t.Parallel()
			if examples[name] == nil {
				t.Fatal("the operation has no example: add one to examples")
			}
			w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
			err := examples[name](t.Context(), w)
			if err != nil && !(slices.Contains(absent, name) && errors.Is(err, tsdb.ErrNotFound)) {
				t.Fatal(err)
			}
			s := w.span(name.String() + " tidemark")
			if s.SpanKind != trace.SpanKindClient || s.Status.Code != codes.Unset || s.Status.Description != "" || len(s.Events) > 0 || s.Parent.IsValid() {
				t.Errorf("got span %+v, want a client span without errors", s)
			}
			base := map[string]string{
				string(semconv.DBSystemNameKey): "gcp.bigtable", string(semconv.DBNamespaceKey): "project|instance",
				string(semconv.DBCollectionNameKey): "tidemark", string(semconv.DBOperationNameKey): name.String(),
			}
			if ofDataset(name) {
				base["tidemark.dataset"] = "readings"
			}
			same(t, "at creation", w.atCreation(name.String()+" tidemark"), base)
			ended := plain(s.Attributes)
			requests := ended["tidemark.requests"]
			delete(ended, "tidemark.requests")
			if name.Reads() {
				want := fmt.Sprint(rows[name])
				if got := ended[string(semconv.DBResponseReturnedRowsKey)]; got != want {
					t.Errorf("got %s returned rows, want %s", got, want)
				}
				delete(ended, string(semconv.DBResponseReturnedRowsKey))
			}
			same(t, "at its end", ended, base)

			durations := w.points(dbconv.ClientOperationDuration{}.Name(), "db.operation.name="+name.String())
			if len(durations) != 1 || durations[0].count != 1 {
				t.Fatalf("got durations %+v, want one", durations)
			}
			same(t, "duration", durations[0].attrs, base)
			if took := s.EndTime.Sub(s.StartTime).Seconds(); took != durations[0].sum {
				t.Errorf("got a span of %v and a duration of %v, want them equal", took, durations[0].sum)
			}
			returned := w.points(dbconv.ClientResponseReturnedRows{}.Name(), "db.operation.name="+name.String())
			if name.Reads() != (len(returned) == 1) || name.Reads() && returned[0].sum != rows[name] {
				t.Errorf("got row metrics %+v", returned)
			}
			attempts := w.points("tidemark.attempt.duration", "db.operation.name="+name.String())
			n := uint64(0)
			for _, p := range attempts {
				n += p.count
				if m := p.attrs["rpc.method"]; !strings.HasPrefix(m, "google.bigtable.v2.Bigtable/") || p.attrs["error.type"] != "" {
					t.Errorf("got attempt attributes %v", p.attrs)
				}
			}
			if fmt.Sprint(n) != requests {
				t.Errorf("got %d attempts in the metric and %s in the span, want them equal", n, requests)
			}
		})
	}
}

// ofDataset reports whether an operation belongs to one dataset.
func ofDataset(name telemetry.Name) bool {
	return name < telemetry.Ping || name >= telemetry.RollupAdd && name <= telemetry.RollupRebuild
}

func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// TestEachOperationInFailure checks the span and the metrics of each operation if the service refuses all its requests.
func TestEachOperationInFailure(t *testing.T) {
	for name := range telemetry.Operations {
		t.Run(name.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
			if name == telemetry.Upkeep {
				return // see TestUpkeepFails
			}
			switch name {
			case telemetry.RollupBuckets, telemetry.RollupLatest, telemetry.RollupMany, telemetry.RollupTotal, telemetry.RollupEntities, telemetry.RollupRebuild:
				_ = examples[name](t.Context(), w) // so that the store has read the catalogue
				w.forget()
			}
			w.conn.Inject(tsdbtest.Fail(grpccodes.PermissionDenied))
			err := examples[name](t.Context(), w)
			if name == telemetry.EnsureView { // calls only the admin API
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("got nil, want an error")
			}
			s := w.span(name.String() + " tidemark")
			attrs := plain(s.Attributes)
			if s.Status.Code != codes.Error || s.Status.Description != "" || attrs["error.type"] != "PERMISSION_DENIED" || attrs["db.response.status_code"] != "PERMISSION_DENIED" {
				t.Errorf("got attributes %v and status %+v, want PERMISSION_DENIED", attrs, s.Status)
			}
			if len(s.Events) == 0 || s.Events[0].Name != "tidemark.attempt.failed" || plain(s.Events[0].Attributes)["error.type"] != "PERMISSION_DENIED" {
				t.Errorf("got events %+v, want a failed attempt", s.Events)
			}
			for _, metric := range []string{"db.client.operation.duration", "tidemark.attempt.duration"} {
				if n := w.counted(metric, "db.operation.name="+name.String(), "error.type=PERMISSION_DENIED", "db.response.status_code=PERMISSION_DENIED"); n == 0 {
					t.Errorf("%s: got %+v", metric, w.points(metric, "db.operation.name="+name.String()))
				}
			}
			if n := w.counted("db.client.operation.duration", "db.operation.name="+name.String()); n != 1 {
				t.Errorf("got %d operations, want 1", n)
			}
		})
	}
}

// TestInstruments compares names, units, kinds and buckets with the conventions.
func TestInstruments(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{Tenants: 10}, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 100}}})
	if err := errors.Join(examples[telemetry.RollupPass](t.Context(), w), examples[telemetry.Latest](t.Context(), w)); err != nil {
		t.Fatal(err)
	}
	writer, err := w.store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close(t.Context()) //nolint:errcheck // the writer is empty
	if err := errors.Join(w.repo.Via(writer).Enqueue(t.Context(), roof, w.base, 2), writer.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	if d := (dbconv.ClientOperationDuration{}); d.Name() != "db.client.operation.duration" || d.Unit() != "s" {
		t.Errorf("%s: got unit %s", d.Name(), d.Unit())
	}
	if d := (dbconv.ClientResponseReturnedRows{}); d.Name() != "db.client.response.returned_rows" || d.Unit() != "{row}" {
		t.Errorf("%s: got unit %s", d.Name(), d.Unit())
	}
	have := w.instruments()
	for name, m := range have {
		got := kindOf(m.Data)
		if e, ok := instruments[name]; !ok || m.Unit != e.unit || got != e.kind || m.Description == "" || !slices.Equal(boundsOf(m.Data), e.bounds) {
			t.Errorf("%s: got unit %s, kind %s, buckets %v, description %q; want %+v", name, m.Unit, got, boundsOf(m.Data), m.Description, e)
		}
	}
	for name := range instruments {
		if _, ok := have[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
}
