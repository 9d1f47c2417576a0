package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	wallclock "github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// headed returns a schema of readings with heads of three points.
func headSchema(t testing.TB, only bool, opts tsdb.SchemaOptions) *tsdb.Schema[reading] {
	t.Helper()
	opts.Precision, opts.Head = tsdb.Milliseconds, tsdb.Head{Points: kept, Only: only}
	return readings(t, opts)
}

func TestHeadsThatNoSchemaCanHave(t *testing.T) {
	ms := tsdb.Milliseconds
	for _, tt := range []struct {
		opts tsdb.SchemaOptions
		want string
	}{
		{tsdb.SchemaOptions{Head: tsdb.Head{Points: 5}}, "Precision is ns; want Milliseconds"},
		{tsdb.SchemaOptions{Head: tsdb.Head{Points: 5}, Precision: tsdb.Microseconds}, "Precision is us; want Milliseconds"},
		{tsdb.SchemaOptions{Head: tsdb.Head{Points: -1}, Precision: ms}, "Head.Points is -1; want 0 for none, or up to 100"},
		{tsdb.SchemaOptions{Head: tsdb.Head{Points: 101}, Precision: ms}, "Head.Points is 101; want 0 for none, or up to 100"},
		{tsdb.SchemaOptions{Head: tsdb.Head{Only: true}, Precision: ms}, "Head.Points is 0; want 1 to 100"},
		{tsdb.SchemaOptions{Head: tsdb.Head{Points: 1, Only: true}, Precision: ms, FirstWins: true}, "FirstWins is true; want false"},
	} {
		_, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.JSON[reading](), tt.opts)
		if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Define with %+v: %v, want %q", tt.opts, err, tt.want)
		}
	}
	for _, n := range []int{0, 1, 100} {
		if _, err := tsdb.Define("readings", tsdb.Key("site"), codec.JSON[reading](), tsdb.SchemaOptions{Head: tsdb.Head{Points: n}, Precision: ms}); err != nil {
			t.Errorf("Points %d: %v", n, err)
		}
	}
}

// TestPayloadsShareTheHead: a head is one row and one entry, so its points share the limit of one row.
func TestPayloadsShareTheHead(t *testing.T) {
	testkit.Plain(t)
	s := tsdb.MustDefine("r", tsdb.Key("device"), codec.Bytes(), tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 100}})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo, e := s.For(store, acme), tsdb.NewEntity("x")
	if err := repo.Put(t.Context(), e, start, make([]byte, 10<<20/100+1)); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "at most 104857 bytes") {
		t.Errorf("a payload over its share of the head: %v", err)
	}
	conn.Reset()
	var points []tsdb.Point[[]byte]
	for i := range 300 {
		points = append(points, tsdb.Point[[]byte]{Entity: e, Time: start.Add(time.Duration(i) * time.Millisecond), Value: make([]byte, 10<<20/100)})
	}
	if _, err := repo.PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	if n := conn.Counts().Calls[tsdbtest.MutateRows]; n != 5 {
		t.Errorf("30 MiB of points and 10 MiB of a head took %d requests, want 5: 4 of 8 MiB, and one for a larger entry", n)
	}
	if got, err := ofHead(repo, e, 100); err != nil || len(got) != 100 {
		t.Errorf("%d points, %v", len(got), err)
	}
}

// TestEnsureKeepsHeads: Ensure creates the families of heads with both limits of their retention, and refuses a schema
// with other heads.
func TestEnsureKeepsHeads(t *testing.T) {
	ms := tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Retention: d90}
	with := func(n int, only bool) *tsdb.Schema[reading] {
		opts := ms
		opts.Head = tsdb.Head{Points: n, Only: only}
		return readings(t, opts)
	}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, with(5, false))
	_, admin := tsdbtest.Clients(t, conn)
	info, err := admin.TableInfo(t.Context(), tsdbtest.Table)
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]string{}
	for _, f := range info.FamilyInfos {
		policies[f.Name] = f.GCPolicy
	}
	if policies["d90.h5"] != "(age() > 90d || versions() > 5)" || policies["d90"] != "age() > 90d" {
		t.Errorf("families are %v", policies)
	}
	for _, s := range []*tsdb.Schema[reading]{with(0, false), with(4, false), with(5, true)} {
		for name, err := range map[string]error{"Ensure": store.Ensure(t.Context(), s), "Verify": store.Verify(t.Context(), s)} {
			if !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "stored as of 5 points") {
				t.Errorf("%s with other heads: %v, want a conflict", name, err)
			}
		}
	}
	if err := errors.Join(store.Ensure(t.Context(), with(5, false)), store.Verify(t.Context(), with(5, false))); err != nil {
		t.Error(err)
	}
	if err := admin.SetGCPolicy(t.Context(), tsdbtest.Table, "d90.h5", bigtable.MaxVersionsPolicy(1)); err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(t.Context(), with(5, false)); !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "family d90.h5") {
		t.Errorf("a family of heads with another policy: %v, want a conflict", err)
	}
	only, conn := tsdbtest.Open(t, tsdbtest.Options{}, with(5, true))
	_, admin = tsdbtest.Clients(t, conn)
	if info, err = admin.TableInfo(t.Context(), tsdbtest.Table); err != nil || len(info.FamilyInfos) != 2 {
		t.Errorf("a schema with heads only has the families %v, %v", info.FamilyInfos, err)
	}
	_ = only
}

// TestLatePointDoesNotWin: heads are ordered by the time of the points, not by the time of the writes.
func TestLatePointDoesNotWin(t *testing.T) {
	for _, only := range []bool{false, true} {
		s := headSchema(t, only, tsdb.SchemaOptions{})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		for _, minute := range []int{5, 9, 1, 7, 8, 2, 6} {
			if err := repo.Put(t.Context(), roof, start.Add(time.Duration(minute)*time.Minute), reading{float64(minute)}); err != nil {
				t.Fatal(err)
			}
		}
		points, err := ofHead(repo, roof, kept)
		if err != nil || len(points) != 3 || points[0].Value.TempC != 9 || points[1].Value.TempC != 8 || points[2].Value.TempC != 7 {
			t.Errorf("heads only %v: points %v, %v", only, points, err)
		}
		if p, err := repo.Latest(t.Context(), roof); err != nil || p.Value.TempC != 9 {
			t.Errorf("heads only %v: the latest is %v, %v", only, p, err)
		}
	}
}

// TestPointWithoutItsHead: a write that is Unknown may have written its point and no head. Then reads of the entity
// find the point, and reads under a prefix need not, until the write is repeated.
func TestPointWithoutItsHead(t *testing.T) {
	parallelIfSlow(t)
	bubble(t, func(t *testing.T) {
		s := headSchema(t, false, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		check := func(when string, ranged, merged int) {
			t.Helper()
			under := repo.Under(tsdb.AllEntities())
			for name, read := range map[string]struct {
				points iter.Seq2[tsdb.Point[reading], error]
				want   int
			}{"Range": {under.Range(t.Context(), tsdb.AllTime()), ranged}, "Merged": {under.Merged(t.Context(), tsdb.AllTime()), merged}} {
				n := 0
				for _, err := range read.points {
					if err != nil {
						t.Fatal(err)
					}
					n++
				}
				if n != read.want {
					t.Errorf("%s: %s finds %d points, want %d", when, name, n, read.want)
				}
			}
		}
		put := func(i int, want error) {
			t.Helper()
			at := start.Add(time.Duration(i) * time.Second)
			if err := repo.Put(t.Context(), roof, at, reading{1}); !errors.Is(err, want) {
				t.Fatalf("Put: %v, want %v", err, want)
			}
			if _, err := repo.Get(t.Context(), roof, at); err != nil {
				t.Fatal(err)
			}
		}
		noHeads := tsdbtest.FailEntries(codes.Unavailable, func(key string) bool { return strings.Contains(key, "!head") })
		conn.Inject(noHeads)
		put(0, tsdb.ErrUnknown)
		check("the first point without a head", 0, 0)
		conn.Clear()
		put(0, nil)
		check("the first point", 1, 1)
		conn.Inject(noHeads)
		put(1, tsdb.ErrUnknown)
		check("the second point without a head", 2, 1)
		conn.Clear()
		put(1, nil)
		check("both points", 2, 2)
	})
}

// TestHeadsAreCollected runs the engine's garbage collection: it keeps the points that reads show.
func TestHeadsAreCollected(t *testing.T) {
	c := testkit.NewClock(start)
	server, err := local.Open(engine.Options{Clock: c.Now, Steady: wallclock.Follow(c.Now), GCInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	conn, err := server.Dial(tsdb.DialOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	client, admin, err := local.Clients(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	store, err := tsdb.New(client, "t", tsdb.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}, Admin: admin, OnClose: client.Close})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	for _, only := range []bool{false, true} {
		opts := tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Retention: minutes10, Head: tsdb.Head{Points: kept, Only: only}}
		s := tsdb.MustDefine(fmt.Sprintf("only.%v", only), tsdb.Key("site", "device"), codec.JSON[reading](), opts)
		if err := store.Ensure(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		repo := s.For(store, acme)
		for i := range 20 {
			if err := repo.Put(t.Context(), roof, start.Add(time.Duration(i)*time.Second), reading{float64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		for held := 20; held > kept; { // the engine collects in the background
			held = 0
			row, err := client.Open("t").ReadRow(t.Context(), "acme#"+s.Name()+"!head#berlin#roof-7#")
			if err != nil || t.Context().Err() != nil {
				t.Fatal(err)
			}
			for _, items := range row {
				held += len(items)
			}
		}
		got, err := ofHead(repo, roof, kept)
		if err != nil || len(got) != kept || got[0].Value.TempC != 19 || got[2].Value.TempC != 17 {
			t.Errorf("heads only %v: after garbage collection: %v, %v", only, got, err)
		}
		if err := repo.Delete(t.Context(), roof, got[0].Time); err != nil {
			t.Fatal(err)
		}
		if got, err = ofHead(repo, roof, kept); err != nil || got[0].Value.TempC != 18 || len(got) == kept == only {
			t.Errorf("heads only %v: after deleting the newest: %v, %v", only, got, err)
		}
	}
}

// TestClassesThatExpireOutOfOrder: if the newest points expire first, older points that the head may have lost become
// visible, so the head is not used. A point that was replaced by one in a longer class does not reappear.
func TestClassesThatExpireOutOfOrder(t *testing.T) {
	for _, only := range []bool{false, true} {
		long, short := headSchema(t, only, tsdb.SchemaOptions{Retention: minutes20}), headSchema(t, only, tsdb.SchemaOptions{Retention: minutes10, FormerClasses: []gc.Class{minutes20}})
		c := testkit.NewClock(start)
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, long)
		before, after := long.For(store, acme), short.For(store, acme)
		at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Second) }
		for i := range 6 {
			if err := before.Put(t.Context(), roof, at(i), reading{float64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		collected := bigtable.NewMutation()
		collected.DeleteTimestampRange("m20.h3", "p:json", 0, bigtable.Time(at(3)))
		apply(t, table, headKey(roof), collected)
		if err := store.Ensure(t.Context(), short); err != nil {
			t.Fatal(err)
		}
		for i := 5; i < 7; i++ {
			if err := after.Put(t.Context(), roof, at(i), reading{float64(10 * i)}); err != nil {
				t.Fatal(err)
			}
		}
		c.Set(start.Add(15 * time.Minute))
		points, err := ofHead(after, roof, kept)
		want := 3
		if only {
			want = 2
		}
		if err != nil || len(points) != want || points[0].Value.TempC != 4 || points[1].Value.TempC != 3 {
			t.Errorf("heads only %v: points %v, %v", only, points, err)
		}
	}
}

// TestBadCellsInHeads: as in rows of points, a payload that does not decode is one bad point, and cells of other
// programs are ignored.
func TestBadCellsInHeads(t *testing.T) {
	for _, only := range []bool{false, true} {
		s := headSchema(t, only, tsdb.SchemaOptions{})
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		for i := range 3 {
			if err := repo.Put(t.Context(), roof, start.Add(time.Duration(i)*time.Second), reading{float64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		m := bigtable.NewMutation()
		m.Set("keep.h3", "p:json", bigtable.Time(start.Add(time.Second)), []byte("{"))
		m.Set("keep.h3", "p:later", bigtable.Time(start.Add(2*time.Second)), []byte("beside one that is known"))
		m.Set("keep.h3", "p:later", bigtable.Time(start.Add(3*time.Second)), []byte("alone"))
		m.Set("keep.h3", "q", bigtable.Time(start.Add(9*time.Second)), []byte("another's"))
		m.Set("_sys", "p:json", bigtable.Time(start.Add(9*time.Second)), []byte("another's"))
		apply(t, table, headKey(roof), m)
		points, err := ofHead(repo, roof, kept)
		var bad tsdb.PointErrors
		if !errors.As(err, &bad) || len(bad) != 2 || !errors.Is(bad[0], codec.ErrUnknownTag) || !errors.Is(bad[1], codec.ErrCorrupt) {
			t.Fatalf("heads only %v: points %v, %v", only, points, err)
		}
		if len(points) != 3 || points[1].Value.TempC != 2 || !bad[1].Time.Equal(start.Add(time.Second)) {
			t.Errorf("heads only %v: points %v", only, points)
		}
	}
}

// TestConditionalWritesRepairTheHead: writing a point again adds it to the head if the first write did not reach the
// head.
func TestConditionalWritesRepairTheHead(t *testing.T) {
	put := func(ctx context.Context, r *tsdb.Repository[reading]) error {
		return r.Put(ctx, roof, start, reading{1})
	}
	many := func(ctx context.Context, r *tsdb.Repository[reading]) error {
		_, err := r.PutMany(ctx, []tsdb.Point[reading]{{Entity: roof, Time: start, Value: reading{1}}, {Entity: roof, Time: start, Value: reading{1}}})
		return err
	}
	absent := func(ctx context.Context, r *tsdb.Repository[reading]) error {
		stored, err := r.PutIfAbsent(ctx, roof, start, reading{1})
		if stored {
			return errors.New("the point was there")
		}
		return err
	}
	for name, tt := range map[string]struct {
		first bool
		call  func(context.Context, *tsdb.Repository[reading]) error
	}{"Put": {true, put}, "PutMany": {true, many}, "PutIfAbsent": {false, absent}, "PutIfAbsent, first wins": {true, absent}} {
		s := headSchema(t, false, tsdb.SchemaOptions{FirstWins: tt.first})
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		if err := put(t.Context(), repo); err != nil {
			t.Fatal(err)
		}
		m := bigtable.NewMutation()
		m.DeleteRow()
		apply(t, table, headKey(roof), m)
		if err := tt.call(t.Context(), repo); err != nil || !inHead(rows(t, table)[headKey(roof)], start) {
			t.Errorf("%s: error %v, the head is %v", name, err, rows(t, table)[headKey(roof)])
		}
		_ = repo.Put(t.Context(), roof, start, reading{2})
		if stored, err := repo.PutIfAbsent(t.Context(), roof, start, reading{3}); stored || err != nil {
			t.Errorf("%s: PutIfAbsent of another value = %v, %v; want false", name, stored, err)
		}
		wholeHead(t, name, repo, roof, kept)
	}
}

// TestEndsOfTimeInHeads: the first and the last time that a head can hold.
func TestEndsOfTimeInHeads(t *testing.T) {
	for _, only := range []bool{false, true} {
		s := headSchema(t, only, tsdb.SchemaOptions{})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		last := time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
		times := []time.Time{last, start, time.UnixMilli(0).UTC()}
		for i, at := range times {
			if err := repo.Put(t.Context(), roof, at, reading{float64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		for i, at := range times {
			if p, err := repo.Get(t.Context(), roof, at); err != nil || p.Value.TempC != float64(i) {
				t.Errorf("heads only %v: at %v: %v, %v", only, at, p, err)
			}
			if got, err := ofHead(repo, roof, kept); err != nil || len(got) != len(times)-i || !got[0].Time.Equal(at) {
				t.Errorf("heads only %v: points %v, %v", only, got, err)
			}
			if only {
				if stored, err := repo.PutIfAbsent(t.Context(), roof, at, reading{}); stored || err != nil {
					t.Errorf("PutIfAbsent at %v: %v, %v", at, stored, err)
				}
			}
			if err := repo.Delete(t.Context(), roof, at); err != nil {
				t.Fatal(err)
			}
		}
	}
}
