package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// halfDegree is a dead band of half a degree, and a minute.
var halfDegree = tsdb.OnChange[reading]{
	Same:    func(last, next reading) bool { return math.Abs(last.TempC-next.TempC) <= 0.5 },
	AtLeast: time.Minute,
}

// changing is a writer whose points of the roof are stored on change.
type changing struct {
	t    *testing.T
	repo *tsdb.Repository[reading]
	w    *tsdb.Writer
	sink *tsdb.Sink[reading]
}

func newChanging(t *testing.T, store *tsdb.Store, s *tsdb.Schema[reading], opts tsdb.WriterOptions) *changing {
	w := writer(t, store, opts)
	repo := s.For(store, acme)
	return &changing{t, repo, w, repo.Via(w).OnChange(halfDegree)}
}

// put gives one point to the sink, and waits for its outcome.
func (c *changing) put(sec int, temp float64) tsdb.State {
	c.t.Helper()
	out, _ := c.sink.EnqueueMany(c.t.Context(), []tsdb.Point[reading]{{Entity: roof, Time: start.Add(time.Duration(sec) * time.Second), Value: reading{temp}}})
	return out[0].State
}

// want checks the states of points that are put one after the other, each second:temperature:state.
func (c *changing) want(points string) {
	c.t.Helper()
	for _, p := range strings.Fields(points) {
		var sec int
		var temp float64
		parts := strings.Split(p, ":")
		_, _ = fmt.Sscan(parts[0], &sec)
		_, _ = fmt.Sscan(parts[1], &temp)
		if got := c.put(sec, temp); got.String() != parts[2] {
			c.t.Errorf("the point at %d s with %v is %v, want %s", sec, temp, got, parts[2])
		}
	}
}

// holds checks what is stored of the roof, oldest first.
func (c *changing) holds(want string) {
	c.t.Helper()
	if got := c.table(); got != want {
		c.t.Errorf("stored is\n%s, want\n%s", got, want)
	}
}

func (c *changing) table() string {
	c.t.Helper()
	var list []string
	for p, err := range c.repo.Range(c.t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst) {
		if err != nil {
			c.t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%v:%v", p.Time.Sub(start).Seconds(), p.Value.TempC))
	}
	return strings.Join(list, " ")
}

// TestOnChange: points that say nothing new are left out, and the newest of them is stored before a step, before a late
// point, before a pause, and by Close.
func TestOnChange(t *testing.T) {
	for name, tt := range map[string]struct{ points, table, closed string }{
		"a step stays a step": {
			"0:20:stored 10:20:unchanged 20:20.4:unchanged 30:25:stored 40:25:unchanged",
			"0:20 20:20.4 30:25", "0:20 20:20.4 30:25 40:25",
		},
		"small steps do not add up": {"0:20:stored 10:20.4:unchanged 20:20.8:stored", "0:20 10:20.4 20:20.8", ""},
		"at least each minute":      {"0:20:stored 30:20:unchanged 59:20:unchanged 60:20:stored 70:20:unchanged", "0:20 60:20", "0:20 60:20 70:20"},
		"a pause":                   {"0:20:stored 30:20:unchanged 3600:20:stored", "0:20 30:20 3600:20", ""},
		"a pause, then a step":      {"0:20:stored 30:20:unchanged 3600:25:stored", "0:20 30:20 3600:25", ""},
		"an older point":            {"0:20:stored 30:20:unchanged -10:20:stored 40:20:unchanged 45:25:stored", "-10:20 0:20 30:20 40:20 45:25", ""},
		"between the last and the held": {
			"0:20:stored 30:20:unchanged 10:20:unchanged 20:25:stored 40:20:unchanged 50:25:stored",
			"0:20 20:25 30:20 40:20 50:25", "",
		},
		"the same point again":      {"0:20:stored 0:20:unchanged 0:20.2:stored 0:20.2:unchanged", "0:20.2", ""},
		"the held point is changed": {"0:20:stored 10:20:unchanged 10:25:stored", "0:20 10:25", ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := readings(t, tsdb.SchemaOptions{})
				store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
				c := newChanging(t, store, s, tsdb.WriterOptions{})
				c.want(tt.points)
				if err := c.w.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				c.holds(tt.table)
				if err := c.w.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if tt.closed != "" {
					c.holds(tt.closed)
				}
				if got, want := c.w.Stats().Unchanged, uint64(strings.Count(tt.points, "unchanged")); got != want {
					t.Errorf("%d are counted as unchanged, want %d", got, want)
				}
			})
		})
	}
}

// TestOnChangeOfOneCall: points of one call are compared with each other, before any is stored.
func TestOnChangeOfOneCall(t *testing.T) {
	for _, opts := range []tsdb.WriterOptions{{}, journaled(t)} {
		bubble(t, func(t *testing.T) {
			s := readings(t, tsdb.SchemaOptions{})
			store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
			c := newChanging(t, store, s, opts)
			var points []tsdb.Point[reading]
			for i := range 100 {
				points = append(points, tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(i) * time.Second), Value: reading{float64(i / 50)}})
			}
			outcomes, err := c.sink.EnqueueMany(t.Context(), points)
			if err != nil {
				t.Fatal(err)
			}
			counts := map[tsdb.State]int{}
			for _, o := range outcomes {
				counts[o.State]++
			}
			if err := c.w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.holds("0:0 49:0 50:1")
			// The point before the step is stored. It is counted as unchanged if the first one was journaled before the
			// step was compared.
			if n := counts[tsdb.Unchanged]; n != 97 && (n != 98 || opts.Journal.Dir == "") {
				t.Errorf("the outcomes are %v, want 97 unchanged", counts)
			}
			if err := c.w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.holds("0:0 49:0 50:1 99:1")
		})
	}
}

// TestOnChangeAfterFailures: a point that is not stored, or that nobody knows of, is no last value; points that waited
// for it are stored in its place.
func TestOnChangeAfterFailures(t *testing.T) {
	for name, f := range map[string]tsdbtest.Fault{
		"refused": tsdbtest.FailEntries(codes.InvalidArgument, func(key string) bool { return true }).Times(1),
		"unknown": tsdbtest.LoseResponse(codes.Unavailable),
	} {
		t.Run(name, func(t *testing.T) {
			longBubble(t, func(t *testing.T) {
				s := readings(t, tsdb.SchemaOptions{})
				store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
				c := newChanging(t, store, s, tsdb.WriterOptions{DeliveryTimeout: 10 * time.Second, Linger: time.Second})
				conn.Inject(f.On(tsdbtest.MutateRows))
				var points []tsdb.Point[reading]
				for i := range 3 {
					points = append(points, tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(i) * time.Second), Value: reading{20}})
				}
				ended := make(chan []tsdb.Outcome, 1)
				go func() {
					out, _ := c.sink.EnqueueMany(t.Context(), points)
					ended <- out
				}()
				time.Sleep(11 * time.Second)
				conn.Clear()
				out := <-ended
				if name == "refused" != (out[0].State == tsdb.Rejected) || name == "unknown" != (out[0].State == tsdb.Unknown) {
					t.Fatalf("the first is %v", out[0])
				}
				if out[1].State != tsdb.Stored || out[2].State != tsdb.Stored {
					t.Errorf("those that waited are %v and %v, want stored", out[1].State, out[2].State)
				}
				c.want("3:20:stored 4:20:unchanged")
			})
		})
	}
}

// TestOnChangeForgets: after a deletion, an erasure, a new class of the tenant, a restart of the writer, or a point
// that was not compared, the next point is stored, and nothing that was held comes back.
func TestOnChangeForgets(t *testing.T) {
	all := tsdb.AllTime()
	for name, tt := range map[string]struct {
		do    func(t *testing.T, c *changing) error
		table string
	}{
		"Delete": {func(t *testing.T, c *changing) error { return c.repo.Delete(t.Context(), roof, start) }, "20:20"},
		"DeleteRange": {func(t *testing.T, c *changing) error {
			_, err := c.repo.DeleteRange(t.Context(), roof, all)
			return err
		}, "20:20"},
		"DeletePrefix": {func(t *testing.T, c *changing) error {
			_, err := c.repo.DeletePrefix(t.Context(), tsdb.NewPrefix("berlin"))
			return err
		}, "20:20"},
		"all entities": {func(t *testing.T, c *changing) error {
			_, err := c.repo.DeletePrefix(t.Context(), tsdb.AllEntities())
			return err
		}, "20:20"},
		"erasure": {func(t *testing.T, c *changing) error {
			if _, err := tenants.Erase(t.Context(), c.repo.Store(), acme, erasing); err != nil {
				return err
			}
			return tenants.Readmit(t.Context(), c.repo.Store(), acme)
		}, "20:20"},
		"erasure of the entity": {func(t *testing.T, c *changing) error {
			key := map[string]string{"site": "berlin", "device": "roof-7"}
			if _, err := tenants.EraseEntity(t.Context(), c.repo.Store(), acme, "readings", key, erasing); err != nil {
				return err
			}
			return tenants.ReadmitEntity(t.Context(), c.repo.Store(), acme, "readings", key)
		}, "20:20"},
		"class": {func(t *testing.T, c *changing) error {
			assign(t, c.repo.Store(), acme, tenants.Profile{Retention: "d30"})
			return nil
		}, "0:20 20:20"},
		"restart": {func(t *testing.T, c *changing) error {
			err := c.w.Close(t.Context())
			*c = *newChanging(t, c.repo.Store(), c.repo.Schema(), tsdb.WriterOptions{})
			return err
		}, "0:20 10:20 20:20"},
		"another sink of the writer": {func(t *testing.T, c *changing) error {
			return c.repo.Via(c.w).Enqueue(t.Context(), roof, start.Add(15*time.Second), reading{30})
		}, "0:20 10:20 15:30 20:20"},
	} {
		t.Run(name, func(t *testing.T) {
			longBubble(t, func(t *testing.T) {
				s := readings(t, tsdb.SchemaOptions{Retention: week, Classes: []gc.Class{month}, Precision: tsdb.Milliseconds})
				store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
				c := newChanging(t, store, s, tsdb.WriterOptions{})
				other := tsdb.NewEntity("paris", "roof-7")
				at := start
				start = time.Now().Add(-time.Hour).Truncate(time.Second) // in the class
				defer func() { start = at }()
				if err := c.repo.Put(t.Context(), other, start, reading{1}); err != nil {
					t.Fatal(err)
				}
				c.want("0:20:stored 10:20:unchanged")
				if err := tt.do(t, c); err != nil {
					t.Fatal(err)
				}
				c.want("20:20:stored 30:20:unchanged")
				if err := c.w.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				c.holds(tt.table)
			})
		})
	}
}

// TestOnChangeErasedWhileHeld: a held point of an erased tenant is never stored, not even after the tenant is
// readmitted.
func TestOnChangeErasedWhileHeld(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		c := newChanging(t, store, s, tsdb.WriterOptions{})
		c.want("0:20:stored 10:20:unchanged")
		if _, err := tenants.Erase(t.Context(), store, acme, erasing); err != nil {
			t.Fatal(err)
		}
		if err := tenants.Readmit(t.Context(), store, acme); err != nil {
			t.Fatal(err)
		}
		if err := c.w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		c.holds("")
	})
}

// TestOnChangeOfSeveralWriters: if two writers store points of an entity, a reader sees a wrong value for less than
// AtLeast.
func TestOnChangeOfSeveralWriters(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		both := []*changing{newChanging(t, store, s, tsdb.WriterOptions{}), newChanging(t, store, s, tsdb.WriterOptions{})}
		wrong, longest := 0, 0
		for sec := range 3000 {
			temp := 20 + 5*float64(1-min(1, sec%97/2))
			both[sec*7919%13%2].put(sec, temp)
			p, err := both[0].repo.Latest(t.Context(), roof)
			if err != nil {
				t.Fatal(err)
			}
			if wrong++; math.Abs(p.Value.TempC-temp) <= 0.5 {
				wrong = 0
			}
			longest = max(longest, wrong)
		}
		if longest == 0 || longest >= 60 {
			t.Errorf("a wrong value was shown for %d s, want some, and less than 60", longest)
		}
	})
}

// TestOnChangeWithAJournal: a journaled point is a last value until it becomes a dead letter. What is held survives
// Close, in the journal.
func TestOnChangeWithAJournal(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		opts := journaled(t)
		c := newChanging(t, store, s, opts)
		ctx := t.Context()
		for sec := range 3 {
			if err := c.sink.Enqueue(ctx, roof, start.Add(time.Duration(sec)*time.Second), reading{20}); err != nil {
				t.Fatal(err)
			}
		}
		if st := c.w.Stats(); st.Unchanged != 2 {
			t.Errorf("%d unchanged, want 2", st.Unchanged)
		}
		c.want("3:25:journaled 4:25:unchanged")
		if err := c.w.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		c.holds("0:20 2:20 3:25")
		conn.Inject(tsdbtest.FailEntries(codes.InvalidArgument, func(string) bool { return true }).On(tsdbtest.MutateRows).Times(1))
		c.want("5:30:journaled")
		if err := c.w.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if len(letters(t, c.w)) == 0 {
			t.Fatal("no dead letter")
		}
		c.want("6:30:journaled 7:30:unchanged")
		down, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		conn.Inject(tsdbtest.Fail(codes.Unavailable).On(tsdbtest.MutateRows))
		if err := c.w.Close(down); !errors.Is(err, tsdb.ErrUndelivered) {
			t.Errorf("Close = %v, want ErrUndelivered", err)
		}
		conn.Clear()
		c = newChanging(t, store, s, opts)
		if err := c.w.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if table := c.table(); !strings.HasSuffix(table, "6:30 7:30") {
			t.Errorf("the next writer delivered %s, want also 7:30", table)
		}
	})
}

// TestOnChangeOfFields: points that have some fields of an entity in turn are compared with those of the same fields,
// and a field that comes with others makes its own points new.
func TestOnChangeOfFields(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := must[*tsdb.Schema[codec.Record]](t)(tsdb.Define("r", tsdb.Key("a", "b"), codec.Records(), tsdb.SchemaOptions{Merge: true}))
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		w := writer(t, store, tsdb.WriterOptions{})
		repo := s.For(store, acme)
		sink := repo.Via(w).OnChange(tsdb.OnChange[codec.Record]{Fields: func(r codec.Record) (names []string) {
			for name := range r.All() {
				names = append(names, name)
			}
			return names
		}})
		for i, step := range []struct {
			fields string
			want   tsdb.State
		}{
			{"t=1", tsdb.Stored},
			{"h=5", tsdb.Stored},
			{"t=1", tsdb.Unchanged},
			{"h=5", tsdb.Unchanged},
			{"h=6", tsdb.Stored},
			{"t=1", tsdb.Unchanged},
			{"t=2 h=6", tsdb.Stored},
			{"t=1", tsdb.Stored},
			{"t=1", tsdb.Unchanged},
			{"t=2 h=6", tsdb.Stored},
		} {
			var fields []codec.Field
			for _, f := range strings.Fields(step.fields) {
				name, value, _ := strings.Cut(f, "=")
				fields = append(fields, codec.Field{Name: name, Value: codec.Str(value)})
			}
			out, _ := sink.EnqueueMany(t.Context(), []tsdb.Point[codec.Record]{{Entity: roof, Time: start.Add(time.Duration(i) * time.Second), Value: codec.NewRecord(fields...)}})
			if out[0].State != step.want {
				t.Errorf("%d: %s is %v, want %v", i, step.fields, out[0].State, step.want)
			}
		}
		var stored []int
		for p, err := range repo.Range(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst) {
			if err != nil {
				t.Fatal(err)
			}
			stored = append(stored, int(p.Time.Sub(start).Seconds()))
		}
		if want := []int{0, 1, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(stored, want) {
			t.Errorf("stored are %v, want %v: the point before each change, also of other fields", stored, want)
		}
	})
}

// TestOnChangeOptions: refused options are named, by each call. A value is stored again before it expires, whatever
// AtLeast says.
func TestOnChangeOptions(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{Retention: gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}})
		ids := must[*tsdb.Schema[reading]](t)(tsdb.Define("ids", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Identity: true}))
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s, ids)
		w := writer(t, store, tsdb.WriterOptions{})
		now := time.Now()
		var none *tsdb.Sink[reading]
		for field, sink := range map[string]*tsdb.Sink[reading]{
			"AtLeast":    s.For(store, acme).Via(w).OnChange(tsdb.OnChange[reading]{AtLeast: -1}),
			"OnChange":   ids.For(store, acme).WithID("x").Via(w).OnChange(tsdb.OnChange[reading]{}),
			"repository": (*tsdb.Repository[reading])(nil).Via(w).OnChange(tsdb.OnChange[reading]{}),
			"writer":     s.For(store, acme).Via(nil).OnChange(tsdb.OnChange[reading]{}),
			"sink":       none.OnChange(tsdb.OnChange[reading]{}),
		} {
			err := sink.Enqueue(t.Context(), roof, now, reading{1})
			if bad, ok := errors.AsType[*tsdb.InvalidError](err); !ok || bad.Field != field {
				t.Errorf("%s: %v", field, err)
			}
		}
		for name, tt := range map[string]struct {
			o    tsdb.OnChange[reading]
			want time.Duration
		}{
			"zero":            {tsdb.OnChange[reading]{}, 5 * time.Minute},
			"an owner":        {tsdb.OnChange[reading]{Owner: true}, 30 * time.Minute},
			"more than half":  {tsdb.OnChange[reading]{AtLeast: 50 * time.Minute}, 30 * time.Minute},
			"an owner's time": {tsdb.OnChange[reading]{Owner: true, AtLeast: time.Minute}, time.Minute},
		} {
			e, sink := tsdb.NewEntity("berlin", name), s.For(store, acme).Via(w).OnChange(tt.o)
			var points []tsdb.Point[reading]
			for i := range 41 {
				points = append(points, tsdb.Point[reading]{Entity: e, Time: now.Add(time.Duration(i-41) * time.Minute), Value: reading{1}})
			}
			out, err := sink.EnqueueMany(t.Context(), points)
			if err != nil {
				t.Fatal(err)
			}
			second := 1 + slices.IndexFunc(out[1:], func(o tsdb.Outcome) bool { return o.State == tsdb.Stored })
			if got := time.Duration(second) * time.Minute; got != tt.want {
				t.Errorf("%s: stored again after %v, want %v", name, got, tt.want)
			}
		}
	})
}

// TestOnChangeKeepsTenantsApart: equal entities of two tenants have nothing to do with each other.
func TestOnChangeKeepsTenantsApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		w := writer(t, store, tsdb.WriterOptions{})
		for _, name := range hostileTenants {
			out, err := s.For(store, tenant.MustParse(name)).Via(w).OnChange(halfDegree).EnqueueMany(t.Context(), []tsdb.Point[reading]{{Entity: roof, Time: start, Value: reading{1}}})
			if err != nil || out[0].State != tsdb.Stored {
				t.Errorf("the first point of %s is %v, %v", name, out[0].State, err)
			}
		}
	})
}
