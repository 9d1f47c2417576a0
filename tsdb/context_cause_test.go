package tsdb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestContextsThatEndForAReason: an error of a call that its context ended wraps the context's cause, as from
// signal.NotifyContext, and context.Canceled.
func TestContextsThatEndForAReason(t *testing.T) {
	terminated := errors.New("terminated signal received")
	s := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{})
	e, other := tsdb.NewEntity("a", "1"), tsdb.NewEntity("b", "1")
	two := []tsdb.Point[string]{{Entity: e, Time: start, Value: "x"}, {Entity: other, Time: start, Value: "x"}}
	type world struct {
		store *tsdb.Store
		repo  *tsdb.Repository[string]
		w     *tsdb.Writer
	}
	for name, call := range map[string]func(context.Context, world) error{
		"Put":         func(ctx context.Context, w world) error { return w.repo.Put(ctx, e, start, "x") },
		"PutIfAbsent": func(ctx context.Context, w world) error { _, err := w.repo.PutIfAbsent(ctx, e, start, "x"); return err },
		"PutMany":     func(ctx context.Context, w world) error { _, err := w.repo.PutMany(ctx, two); return err },
		"an outcome of PutMany": func(ctx context.Context, w world) error {
			outcomes, _ := w.repo.PutMany(ctx, two)
			return outcomes[1].Err
		},
		"Put of a full writer": func(ctx context.Context, w world) (err error) {
			for i := 0; i < 20 && err == nil; i++ {
				err = w.repo.Via(w.w).Enqueue(ctx, e, start.Add(time.Duration(i)*time.Second), "x")
			}
			return err
		},
		"a writer's PutMany": func(ctx context.Context, w world) error {
			outcomes, _ := w.repo.Via(w.w).EnqueueMany(ctx, two)
			return outcomes[1].Err
		},
		"a writer's Flush": func(ctx context.Context, w world) error {
			if err := w.repo.Via(w.w).EnqueueFunc(context.WithoutCancel(ctx), e, start, "x", func(tsdb.Outcome) {}); err != nil {
				return err
			}
			return w.w.Flush(ctx)
		},
		"a writer's Close": func(ctx context.Context, w world) error {
			if err := w.repo.Via(w.w).EnqueueFunc(context.WithoutCancel(ctx), e, start, "x", func(tsdb.Outcome) {}); err != nil {
				return err
			}
			return w.w.Close(ctx)
		},
		"Get":    func(ctx context.Context, w world) error { _, err := w.repo.Get(ctx, e, start); return err },
		"Latest": func(ctx context.Context, w world) error { _, err := w.repo.Latest(ctx, e); return err },
		"a stale Latest": func(ctx context.Context, w world) error {
			_, err := w.repo.Latest(ctx, e, tsdb.MaxStale(time.Minute))
			return err
		},
		"a hedged Latest": func(ctx context.Context, w world) error {
			_, err := w.repo.Latest(ctx, e, tsdb.Hedge{After: 10 * time.Millisecond, MaxRatio: 1})
			return err
		},
		"AsOf":    func(ctx context.Context, w world) error { _, err := w.repo.AsOf(ctx, e, start); return err },
		"LatestN": func(ctx context.Context, w world) error { _, err := w.repo.LatestN(ctx, e, 2); return err },
		"LatestMany": func(ctx context.Context, w world) error {
			_, err := latestMany(ctx, w.repo, []tsdb.Entity{e, other})
			return err
		},
		"a stale LatestMany": func(ctx context.Context, w world) error {
			_, err := latestMany(ctx, w.repo, []tsdb.Entity{e, other}, tsdb.MaxStale(time.Minute))
			return err
		},
		"Range": func(ctx context.Context, w world) error {
			for _, err := range w.repo.Range(ctx, e, tsdb.AllTime()) {
				return err
			}
			return nil
		},
		"Under.Latest": func(ctx context.Context, w world) error {
			for _, err := range w.repo.Under(tsdb.AllEntities()).Latest(ctx) {
				return err
			}
			return nil
		},
		"Page": func(ctx context.Context, w world) error {
			_, err := w.repo.Page(ctx, e, tsdb.AllTime(), 5, "")
			return err
		},
		"Delete": func(ctx context.Context, w world) error { return w.repo.Delete(ctx, e, start) },
		"DeleteRange of all": func(ctx context.Context, w world) error {
			_, err := w.repo.DeleteRange(ctx, e, tsdb.AllTime())
			return err
		},
		"Ping":         func(ctx context.Context, w world) error { return w.store.Ping(ctx) },
		"tenants.Load": func(ctx context.Context, w world) error { _, err := tenants.Load(ctx, w.store, acme); return err },
		"tenants.List": func(ctx context.Context, w world) error {
			for _, err := range tenants.List(ctx, w.store, tenants.ListOptions{}) {
				return err
			}
			return nil
		},
	} {
		for _, when := range []string{"before", "during"} {
			t.Run(name+", "+when, func(t *testing.T) {
				longBubble(t, func(t *testing.T) {
					store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 10}, Timeouts: tsdb.Timeouts{Read: time.Hour, Write: time.Hour, Scan: time.Hour}}}, s)
					repo := s.For(store, acme)
					if _, err := repo.PutMany(t.Context(), two); err != nil {
						t.Fatal(err)
					}
					w, err := store.NewWriter(tsdb.WriterOptions{Linger: time.Minute, BatchPoints: 10, BufferPoints: 10})
					if err != nil {
						t.Fatal(err)
					}
					defer func() {
						gone, cancel := context.WithCancel(t.Context())
						cancel()
						_ = w.Close(gone)
					}()
					conn.Inject(tsdbtest.Delay(2 * time.Hour))
					ctx, cancel := context.WithCancelCause(t.Context())
					if when == "before" {
						cancel(terminated)
					} else {
						defer time.AfterFunc(time.Second, func() { cancel(terminated) }).Stop()
					}
					err = call(ctx, world{store, repo, w})
					if !errors.Is(err, context.Canceled) || !errors.Is(err, terminated) {
						t.Errorf("%v", err)
					}
				})
			})
		}
	}
}

// TestJournalsClosedForAReason: Close reports the points that stay in the journal, and the cause.
func TestJournalsClosedForAReason(t *testing.T) {
	terminated := errors.New("terminated signal received")
	longBubble(t, func(t *testing.T) {
		s := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		w, err := store.NewWriter(journaled(t))
		if err != nil {
			t.Fatal(err)
		}
		conn.Inject(tsdbtest.Delay(2 * time.Hour))
		if err := s.For(store, acme).Via(w).Enqueue(t.Context(), tsdb.NewEntity("a", "1"), time.Now(), "x"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(terminated) })
		if err := w.Flush(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, terminated) {
			t.Errorf("Flush: %v, want the cause", err)
		}
		if err := w.Close(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, terminated) || !errors.Is(err, tsdb.ErrUndelivered) {
			t.Errorf("Close: %v, want ErrUndelivered and the cause", err)
		}
	})
}
