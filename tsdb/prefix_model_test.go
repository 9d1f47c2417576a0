package tsdb_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

type point = tsdb.Point[int64]

// prefixModel is what a tenant has stored.
type prefixModel struct {
	repo   *tsdb.Repository[int64]
	stored map[storedPlace]int64
}

type storedPlace struct {
	entity tsdb.Entity
	at     time.Time
	id     string
}

func (m *prefixModel) put(t *testing.T, points []point) {
	t.Helper()
	if _, err := m.repo.PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		m.stored[storedPlace{p.Entity, p.Time, p.ID}] = p.Value
	}
}

// points returns the stored points of a prefix in an interval that have not expired, by entity and newest first.
func (m *prefixModel) points(p tsdb.Prefix, in tsdb.Interval, oldest time.Time) (out []point) {
	for at, v := range m.stored {
		parts := at.entity.Parts()
		if (p == tsdb.AllEntities() || slices.Equal(parts[:len(p.Parts())], p.Parts())) && in.Contains(at.at) && !at.at.Before(oldest) {
			out = append(out, point{Entity: at.entity, Time: at.at, ID: at.id, Value: v})
		}
	}
	slices.SortFunc(out, func(a, b point) int {
		return cmp.Or(a.Entity.Compare(b.Entity), b.Time.Compare(a.Time), strings.Compare(a.ID, b.ID))
	})
	return out
}

// allOf runs a sequence to its end.
func allOf[P any](t *testing.T, seq iter.Seq2[P, error]) (out []P) {
	t.Helper()
	for p, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

// TestPrefixReaderEqualsAModel: on random data of all kinds of schemas, with late and repeated points, deletions,
// expired points and the points of neighbours under the same names, each call returns what a pass over the stored
// points returns.
func TestPrefixReaderEqualsAModel(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"plain": {}, "salted": {Salts: 4}, "identity": {Identity: true}, "salted identity": {Identity: true, Salts: 2},
		"heads": {Head: tsdb.Head{Points: 3}, Precision: tsdb.Milliseconds}, "heads only": {Head: tsdb.Head{Points: 100, Only: true}, Precision: tsdb.Milliseconds, Salts: 3},
	} {
		if testkit.Raced && name != "salted identity" {
			continue // under the race detector each takes ten times as long
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts.Retention = d90
			s := tsdb.MustDefine("events", tsdb.Key("site", "device"), codec.Int64(), opts)
			c := testkit.NewClock(start)
			store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
			m := prefixModel{s.For(store, acme), map[storedPlace]int64{}}
			rnd := rand.New(rand.NewPCG(1, uint64(len(name))))
			var points []point
			sites := []string{"berlin", "berlin-2", "berli", "a#b", "ü", "~"}
			for i, site := range sites {
				for device := range 1 + 3*i {
					e := tsdb.NewEntity(site, fmt.Sprintf("d%d%%#", device*device))
					n := 1 + rnd.IntN(4)
					if rnd.IntN(4) == 0 {
						n = 40 + rnd.IntN(50)
					}
					if device == 3 && i < 4 && !opts.Head.Only {
						n = 1500 // more than shared requests hold
					}
					for k := range n {
						p := point{Entity: e, Time: start.Add(-time.Duration(rnd.IntN(200*n)) * time.Second).Add(-time.Duration(device) * time.Hour), Value: int64(1 + k)}
						if opts.Identity {
							p.ID = fmt.Sprint("id", rnd.IntN(3))
						}
						points = append(points, p)
					}
					if rnd.IntN(3) == 0 {
						old := point{Entity: e, Time: start.Add(-80 * 24 * time.Hour), Value: -1}
						if opts.Identity {
							old.ID = "old"
						}
						points = append(points, old) // expires
					}
				}
			}
			rnd.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
			slices.SortStableFunc(points, func(a, b point) int { // the last one of a time counts, in one batch too
				return cmp.Or(a.Entity.Compare(b.Entity), a.Time.Compare(b.Time), strings.Compare(a.ID, b.ID))
			})
			points = slices.CompactFunc(points, func(a, b point) bool { return a.Entity == b.Entity && a.Time.Equal(b.Time) && a.ID == b.ID })
			m.put(t, points)
			m.put(t, points[:len(points)/20])
			for _, neighbour := range []string{"acm", "acme2", "acme-"} {
				n := prefixModel{s.For(store, tenant.MustParse(neighbour)), map[storedPlace]int64{}}
				foreign := slices.Clone(points[:200])
				for i := range foreign {
					foreign[i].Value = -7
				}
				n.put(t, foreign)
			}
			for i := 0; i < len(points); i += 17 {
				p := points[i]
				if err := m.repo.WithID(p.ID).Delete(t.Context(), p.Entity, p.Time); err != nil {
					t.Fatal(err)
				}
				delete(m.stored, storedPlace{p.Entity, p.Time, p.ID})
			}
			c.Set(start.Add(11 * 24 * time.Hour))
			m.check(t, c.Now().Add(-90*24*time.Hour))
		})
	}
}

// check compares all calls with the model.
func (m *prefixModel) check(t *testing.T, oldest time.Time) {
	for _, prefix := range []tsdb.Prefix{tsdb.AllEntities(), tsdb.NewPrefix("berli"), tsdb.NewPrefix("a#b"), tsdb.NewPrefix("none")} {
		for _, in := range []tsdb.Interval{
			tsdb.AllTime(), tsdb.Since(start.Add(-10 * time.Minute)), tsdb.Until(start.Add(-5 * time.Hour)).ClosedEnd(),
			tsdb.Between(start.Add(-26*time.Hour), start.Add(-2*time.Hour)), tsdb.Between(start, start),
		} {
			want := m.points(prefix, in, oldest)
			for _, order := range []tsdb.Order{tsdb.NewestFirst, tsdb.OldestFirst} {
				ordered := want
				if order == tsdb.OldestFirst {
					ordered = slices.Clone(want)
					slices.Reverse(ordered)
					slices.SortStableFunc(ordered, func(a, b point) int { return a.Entity.Compare(b.Entity) })
				}
				same(t, fmt.Sprintf("Range of %v, %v", prefix, order), allOf(t, m.repo.Under(prefix).Range(t.Context(), in, order)), ordered)
				same(t, "Range with a limit", allOf(t, m.repo.Under(prefix).Range(t.Context(), in, order, tsdb.Limit(7), tsdb.Concurrency(1))), ordered[:min(7, len(ordered))])
				merged := slices.Clone(ordered)
				slices.SortStableFunc(merged, func(a, b point) int {
					if order == tsdb.OldestFirst {
						return a.Time.Compare(b.Time)
					}
					return b.Time.Compare(a.Time)
				})
				same(t, fmt.Sprintf("Merged of %v, %v", prefix, order), allOf(t, m.repo.Under(prefix).Merged(t.Context(), in, order)), merged)
				same(t, "Merged with a limit", allOf(t, m.repo.Under(prefix).Merged(t.Context(), in, order, tsdb.Limit(400))), merged[:min(400, len(merged))])
				var paged []point
				for next, size := "-", 7; next != ""; size = 4*size + 1 {
					page, err := m.repo.Under(prefix).Page(t.Context(), in, min(size, 2000), strings.TrimPrefix(next, "-"), order)
					if err != nil {
						t.Fatal(err)
					}
					paged, next = append(paged, page.Points...), page.Next
				}
				same(t, fmt.Sprintf("pages of %v, %v", prefix, order), paged, ordered)
			}
		}
		all := m.points(prefix, tsdb.AllTime(), oldest)
		for _, n := range []int{1, 2, 3, 50, 4000} {
			var got, want []point
			for h := range group(all, n) {
				want = append(want, h...)
			}
			for _, h := range allOf(t, m.repo.Under(prefix).LatestN(t.Context(), n)) {
				if len(h.Points) == 0 || h.Entity != h.Points[0].Entity || h.Err != nil {
					t.Errorf("history %v", h)
				}
				got = append(got, h.Points...)
			}
			same(t, fmt.Sprintf("LatestN(%d) of %v", n, prefix), got, want)
		}
		for _, since := range []time.Time{start.Add(time.Hour), start.Add(-10 * time.Minute), start.Add(-3 * time.Hour)} {
			var want []tsdb.Silence
			for h := range group(all, 1) {
				if h[0].Time.Before(since) {
					want = append(want, tsdb.Silence{Entity: h[0].Entity, Last: h[0].Time})
				}
			}
			slices.SortFunc(want, func(a, b tsdb.Silence) int { return cmp.Or(a.Last.Compare(b.Last), a.Entity.Compare(b.Entity)) })
			for _, n := range []int{1, 5, 1000} {
				got, err := m.repo.Under(prefix).Silent(t.Context(), since, n)
				if err != nil || !slices.Equal(got, want[:min(n, len(want))]) {
					t.Errorf("%d silent of %v since %v: %v, %v\nwant %v", n, prefix, since, got, err, want[:min(n, len(want))])
				}
			}
		}
	}
}

// group returns the n first points of each entity of points by entity.
func group(points []point, n int) iter.Seq[[]point] {
	return func(yield func([]point) bool) {
		for len(points) > 0 {
			end := slices.IndexFunc(points, func(p point) bool { return p.Entity != points[0].Entity })
			if end < 0 {
				end = len(points)
			}
			if !yield(points[:min(n, end)]) {
				return
			}
			points = points[end:]
		}
	}
}

func same(t *testing.T, what string, got, want []point) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range got {
		if i == len(want) || got[i] != want[i] {
			t.Errorf("%s: %d points, want %d; point %d is %v", what, len(got), len(want), i, got[i])
			return
		}
	}
	t.Errorf("%s: %d points, want %d", what, len(got), len(want))
}

// fleetOf returns a repository with some devices that have the same number of points each, a second apart.
func fleetOf(t *testing.T, devices, each int, opts tsdbtest.Options) (*tsdb.Repository[int64], *tsdbtest.Conn) {
	t.Helper()
	s := tsdb.MustDefine("events", tsdb.Key("site", "device"), codec.Int64(), tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, opts, s)
	m := prefixModel{s.For(store, acme), map[storedPlace]int64{}}
	var points []point
	for d := range devices {
		for k := range each {
			points = append(points, point{Entity: tsdb.NewEntity("berlin", fmt.Sprintf("d%04d", d)), Time: start.Add(time.Duration(k) * time.Second), Value: 1})
		}
	}
	for part := range slices.Chunk(points, 10_000) {
		m.put(t, part)
	}
	conn.Reset()
	return m.repo, conn
}

// prefixCalls are all calls under a prefix but Follow, each until its first error.
var prefixCalls = map[string]func(context.Context, *tsdb.Repository[int64], ...tsdb.ReadOption) error{
	"Range": func(ctx context.Context, r *tsdb.Repository[int64], o ...tsdb.ReadOption) error {
		return firstError(r.Under(tsdb.AllEntities()).Range(ctx, tsdb.AllTime(), o...))
	},
	"Merged": func(ctx context.Context, r *tsdb.Repository[int64], o ...tsdb.ReadOption) error {
		return firstError(r.Under(tsdb.AllEntities()).Merged(ctx, tsdb.AllTime(), o...))
	},
	"LatestN": func(ctx context.Context, r *tsdb.Repository[int64], o ...tsdb.ReadOption) error {
		return firstError(r.Under(tsdb.AllEntities()).LatestN(ctx, 2, o...))
	},
	"Page": func(ctx context.Context, r *tsdb.Repository[int64], o ...tsdb.ReadOption) error {
		_, err := r.Under(tsdb.AllEntities()).Page(ctx, tsdb.AllTime(), 10_000, "", o...)
		return err
	},
	"Latest": func(ctx context.Context, r *tsdb.Repository[int64], o ...tsdb.ReadOption) error {
		return firstError(r.Under(tsdb.AllEntities()).Latest(ctx, o...))
	},
	"PageLatest": func(ctx context.Context, r *tsdb.Repository[int64], o ...tsdb.ReadOption) error {
		_, err := r.Under(tsdb.AllEntities()).PageLatest(ctx, 10_000, "", o...)
		return err
	},
	"PageEntities": func(ctx context.Context, r *tsdb.Repository[int64], o ...tsdb.ReadOption) error {
		_, err := r.Under(tsdb.AllEntities()).PageEntities(ctx, 10_000, "", o...)
		return err
	},
	"Silent": func(ctx context.Context, r *tsdb.Repository[int64], o ...tsdb.ReadOption) error {
		_, err := r.Under(tsdb.AllEntities()).Silent(ctx, start.AddDate(1, 0, 0), 10, o...)
		return err
	},
	"Children": func(ctx context.Context, r *tsdb.Repository[int64], o ...tsdb.ReadOption) error {
		return errors.Join(firstError(r.Under(tsdb.AllEntities()).Children(ctx, o...)), firstError(r.Under(tsdb.NewPrefix("berlin")).Children(ctx, o...)))
	},
	"Entities": func(ctx context.Context, r *tsdb.Repository[int64], o ...tsdb.ReadOption) error {
		return errors.Join(firstError(r.Under(tsdb.AllEntities()).Entities(ctx, tsdb.Between(start, start.Add(time.Second)), o...)), firstError(r.Under(tsdb.AllEntities()).Entities(ctx, tsdb.AllTime(), o...)))
	},
	"Windows": func(ctx context.Context, r *tsdb.Repository[int64], o ...tsdb.ReadOption) error {
		by, err := window.New(window.Every(time.Hour), []window.Measure[int64]{{Name: "n", Kind: window.Counter, Int: itself}}, window.Options{})
		if err != nil {
			return err
		}
		return firstError(by.ReadGroups(ctx, r.Under(tsdb.AllEntities()), 1, tsdb.Between(start, start.Add(3*time.Hour)), o...))
	},
}

func itself(v int64) (int64, bool) { return v, true }

func firstError[P any](seq iter.Seq2[P, error]) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestPrefixReaderFaults: a call returns the permanent error of any of its requests, and resumes a stream that is cut.
// No goroutine is left.
func TestPrefixReaderFaults(t *testing.T) {
	for name, call := range prefixCalls {
		repo, conn := fleetOf(t, 18, 110, tsdbtest.Options{})
		reads := func() int {
			conn.Reset()
			if err := call(t.Context(), repo); err != nil {
				t.Fatal(name, err)
			}
			return conn.Counts().Calls[tsdbtest.ReadRows]
		}
		fails := func(skip, n int) {
			conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.ReadRows).Skip(skip))
			if err := call(t.Context(), repo); err == nil {
				t.Errorf("%s: request %d of %d fails, and no error", name, skip, n)
			}
			conn.Clear()
		}
		first, later := reads(), reads()
		for skip := 0; skip < later; skip += testkit.Stride(3) {
			fails(skip, later)
		}
		for skip := 0; skip < first; skip += 5 * testkit.Stride(3) { // a store that has met no entities makes other requests
			repo, conn = fleetOf(t, 18, 110, tsdbtest.Options{})
			fails(skip, first)
		}
		conn.Inject(tsdbtest.CutStream(1, codes.Unavailable).On(tsdbtest.ReadRows).Times(2))
		if err := call(t.Context(), repo); err != nil {
			t.Errorf("%s: a stream was cut: %v", name, err)
		}
		conn.Clear()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := call(ctx, repo); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that has ended: %v", name, err)
		}
	}
}

// TestPrefixReaderLoopsCanBeLeft: leaving a loop at any point ends the call, and its place in the tenant's limit of
// reads is free again.
func TestPrefixReaderLoopsCanBeLeft(t *testing.T) {
	l, err := limit.New(limit.Table{Defaults: limit.Limits{ConcurrentReads: 1, FanOut: 1}}, limit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	repo, _ := fleetOf(t, 30, 200, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: l}})
	for name, seq := range map[string]iter.Seq2[point, error]{
		"Range":  repo.Under(tsdb.AllEntities()).Range(t.Context(), tsdb.AllTime(), tsdb.OldestFirst),
		"Merged": repo.Under(tsdb.AllEntities()).Merged(t.Context(), tsdb.AllTime()),
	} {
		for _, stop := range []int{1, 199, 201, 4000} {
			n := 0
			for _, err := range seq {
				if err != nil {
					t.Fatalf("%s, left after %d: %v", name, stop, err)
				}
				if n++; n == stop {
					break
				}
			}
		}
	}
	if err := prefixCalls["Windows"](t.Context(), repo, tsdb.Concurrency(8)); err != nil {
		t.Errorf("Windows of 30 entities is more than one read: %v", err)
	}
	if err := l.Set(limit.Table{Defaults: limit.Limits{RangeLength: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	for name, call := range prefixCalls {
		long := errors.Is(call(t.Context(), repo), limit.ErrExceeded)
		if want := slices.Contains([]string{"Range", "Merged", "Page", "Windows"}, name); long != want {
			t.Errorf("%s of all time is refused by a limit of an hour: %t, want %t", name, long, want)
		}
	}
}

// TestPrefixReaderRefused: arguments that cannot be meant are refused before anything is sent.
func TestPrefixReaderRefused(t *testing.T) {
	repo, conn := fleetOf(t, 1, 1, tsdbtest.Options{})
	all := tsdb.AllEntities()
	mixed := tsdb.Between(start, start.Add(-1))
	for name, err := range map[string]error{
		"no prefix":       firstError(repo.Under(tsdb.Prefix{}).Range(t.Context(), tsdb.AllTime())),
		"a long prefix":   firstError(repo.Under(tsdb.NewPrefix("a", "b")).Range(t.Context(), tsdb.AllTime())),
		"an interval":     firstError(repo.Under(all).Merged(t.Context(), mixed)),
		"n of 0":          firstError(repo.Under(all).LatestN(t.Context(), 0)),
		"n too large":     firstError(repo.Under(all).LatestN(t.Context(), 10_001)),
		"an order":        firstError(repo.Under(all).LatestN(t.Context(), 1, tsdb.OldestFirst)),
		"a limit":         second(repo.Under(all).Page(t.Context(), tsdb.AllTime(), 1, "", tsdb.Limit(1))),
		"a size":          second(repo.Under(all).Page(t.Context(), tsdb.AllTime(), 0, "")),
		"a cursor":        second(repo.Under(all).Page(t.Context(), tsdb.AllTime(), 1, "none")),
		"silence, n of 0": second(repo.Under(all).Silent(t.Context(), start, 0)),
	} {
		if !errors.Is(err, tsdb.ErrInvalid) && !errors.Is(err, tsdb.ErrCursor) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if calls := conn.Counts().Calls; len(calls) > 0 {
		t.Errorf("requests were sent: %v", calls)
	}
}

// TestPrefixReaderManyEntities: Merged takes 10,000 entities and refuses more; those that have been silent for the
// whole interval do not count.
func TestPrefixReaderManyEntities(t *testing.T) {
	if testing.Short() || testkit.Raced {
		t.Skip("10,001 entities")
	}
	repo, _ := fleetOf(t, 10_001, 1, tsdbtest.Options{})
	if err := firstError(repo.Under(tsdb.AllEntities()).Merged(t.Context(), tsdb.AllTime())); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "10000") {
		t.Errorf("10,001 entities: %v", err)
	}
	if got := allOf(t, repo.Under(tsdb.AllEntities()).Merged(t.Context(), tsdb.Since(start.Add(1)))); len(got) != 0 {
		t.Errorf("%d points of entities that are silent", len(got))
	}
}
