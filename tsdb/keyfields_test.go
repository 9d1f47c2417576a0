package tsdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

type runID [16]byte

// kindsKey has a field of each kind.
var kindsKey = tsdb.Key("line").Uint("stop", 5).Int("level", 2).ReversedID("user").ReversedDomain("host").UUID("run").Text("note")

func kindsValues(level int) []any {
	return []any{"U8", 42, level, uint64(1042), "maps.example.com", runID{0x12, 15: 0xab}, "a #b"}
}

func defined(t testing.TB, name string, key tsdb.KeyFields, opts tsdb.SchemaOptions) *tsdb.Schema[string] {
	t.Helper()
	return must[*tsdb.Schema[string]](t)(tsdb.Define(name, key, codec.String(), opts))
}

// TestKeyFieldsOfKinds: entities are made of Go values, are stored in the order of these values, and every read returns
// the values.
func TestKeyFieldsOfKinds(t *testing.T) {
	for _, opts := range []tsdb.SchemaOptions{
		{},
		{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2}},
		{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2, Only: true}},
	} {
		s := defined(t, "arrivals", kindsKey, opts)
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		levels := []int{7, -99, 0, -1, 99, -10, 10, -9}
		for _, level := range levels {
			e := must[tsdb.Entity](t)(s.Entity(kindsValues(level)...))
			for i := range 3 {
				if err := repo.Put(t.Context(), e, start.Add(time.Duration(i)*time.Second), "x"); err != nil {
					t.Fatal(err)
				}
			}
		}
		slices.Sort(levels)
		prefix := must[tsdb.Prefix](t)(s.Prefix("U8", "42"))
		var listed, newest []int
		for e, err := range repo.Under(prefix).Entities(t.Context(), tsdb.AllTime()) {
			listed = append(listed, levelOf(t, s, e, err))
		}
		for p, err := range repo.Under(prefix).Latest(t.Context()) {
			newest = append(newest, levelOf(t, s, p.Entity, err))
		}
		if !slices.Equal(listed, levels) || !slices.Equal(newest, levels) {
			t.Errorf("%+v: entities in the order %v and %v, want %v", opts, listed, newest, levels)
		}
		e := must[tsdb.Entity](t)(s.Entity(kindsValues(-9)...))
		q := query{Entity: e, In: tsdb.AllTime(), Order: tsdb.OldestFirst}
		for cursor, n := "", 0; ; n++ {
			p := must[tsdb.Page[string]](t)(repo.Page(t.Context(), q.Entity, q.In, 1, cursor, q.Order))
			if len(p.Points) > 0 {
				levelOf(t, s, p.Points[0].Entity, nil)
			}
			if cursor = p.Next; cursor == "" {
				if want := max(opts.Head.Points, 3); n+len(p.Points) != want && !opts.Head.Only {
					t.Errorf("%+v: %d pages of one point, want %d", opts, n, want)
				}
				break
			}
		}
		if p := must[tsdb.Point[string]](t)(repo.Latest(t.Context(), e)); p.Entity != e {
			t.Errorf("Latest returns a point of %v, want %v", p.Entity, e)
		}
		if n := must[int](t)(repo.DeletePrefix(t.Context(), prefix)); n == 0 {
			t.Error("DeletePrefix deleted nothing")
		}
	}
}

// levelOf checks that all values of an entity are returned, and returns the level.
func levelOf(t *testing.T, s *tsdb.Schema[string], e tsdb.Entity, err error) int {
	t.Helper()
	var line, host, note string
	var stop uint16
	var level int
	var user uint64
	var run runID
	if err := errors.Join(err, s.Scan(e, &line, &stop, &level, &user, &host, &run, &note)); err != nil {
		t.Fatal(err)
	}
	if got := []any{line, int(stop), level, user, host, run, note}; !reflect.DeepEqual(got, kindsValues(level)) {
		t.Errorf("%v reads as %v", e, got)
	}
	return level
}

// TestPartOfAnotherKindIsNotSent: every call rejects an entity or prefix with a part that its field does not accept,
// before anything is sent. The error names field, value and limit.
func TestPartOfAnotherKindIsNotSent(t *testing.T) {
	s := defined(t, "arrivals", tsdb.Key("line").Uint("stop", 5).Text("door"), tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	e, p := tsdb.NewEntity("U8", "42", "1"), tsdb.NewPrefix("U8", "42") // not padded
	w := must[*tsdb.Writer](t)(store.NewWriter(tsdb.WriterOptions{}))
	defer w.Close(t.Context())
	ctx := t.Context()
	_ = repo.Put(ctx, tsdb.NewEntity("U8", "00042", "1"), start, "x") // the store makes its one-time reads
	conn.Reset()
	second := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"Put":                repo.Put(ctx, e, start, "x"),
		"PutMany":            second(repo.PutMany(ctx, []tsdb.Point[string]{{Entity: e, Time: start}})),
		"Via":                repo.Via(w).Enqueue(ctx, e, start, "x"),
		"Get":                second(repo.Get(ctx, e, start)),
		"Latest":             second(repo.Latest(ctx, e)),
		"LatestN":            second(repo.LatestN(ctx, e, 1)),
		"LatestMany":         second(latestMany(ctx, repo, []tsdb.Entity{e})),
		"AsOf":               second(repo.AsOf(ctx, e, start)),
		"Page":               second(repo.Page(ctx, e, tsdb.AllTime(), 1, "")),
		"Delete":             repo.Delete(ctx, e, start),
		"DeleteRange of all": second(repo.DeleteRange(ctx, e, tsdb.AllTime())),
		"DeleteRange":        second(repo.DeleteRange(ctx, e, tsdb.AllTime())),
		"DeletePrefix":       second(repo.DeletePrefix(ctx, p)),
		"Range": func() (err error) {
			for _, err = range repo.Range(ctx, e, tsdb.AllTime(), tsdb.OldestFirst) {
			}
			return
		}(),
		"Under.Latest": func() (err error) {
			for _, err = range repo.Under(p).Latest(ctx) {
			}
			return
		}(),
		"Entities": func() (err error) {
			for _, err = range repo.Under(p).Entities(ctx, tsdb.AllTime()) {
			}
			return
		}(),
		"Scan": s.Scan(e, new(string), new(string), new(string)),
	} {
		const want = `key field stop is "42"; want a number from 0 to 99999, written as 5 digits with leading zeros`
		if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want ErrInvalid with %q", name, err, want)
		}
	}
	for name, err := range map[string]error{
		"a number with more digits": second(s.Entity("U8", 100_000, "1")),
		"a negative number":         second(s.Prefix("U8", -1)),
	} {
		if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "key field stop is ") {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	for name, err := range map[string]error{
		"too few values":      second(s.Entity("U8", 42)),
		"too many values":     second(s.Entity("U8", 42, "1", "2")),
		"a prefix of all":     second(s.Prefix("U8", 42, "1")),
		"too few targets":     s.Scan(tsdb.NewEntity("U8", "00042", "1"), new(string)),
		"another entity":      s.Scan(tsdb.NewEntity("U8"), new(string), new(string), new(string)),
		"a schema of nothing": second((*tsdb.Schema[string])(nil).Entity()),
	} {
		if !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if sent := conn.Counts().Calls; len(sent) > 0 {
		t.Errorf("rejected calls sent %v", sent)
	}
	for _, key := range []tsdb.KeyFields{tsdb.Key().Uint("n", 0), tsdb.Key().Uint("n", 21), tsdb.Key().Int("n", 20), {}} {
		if _, err := tsdb.Define("x", key, codec.String(), tsdb.SchemaOptions{}); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("Define with %v: %v, want ErrInvalid", key, err)
		}
	}
}

// TestKeyFieldsAreNotShared: extending one KeyFields twice does not change either result.
func TestKeyFieldsAreNotShared(t *testing.T) {
	base := tsdb.Key("a", "b", "c")
	x, y := base.Uint("x", 3), base.Int("y", 3)
	if got := defined(t, "x", x, tsdb.SchemaOptions{}).KeyFields(); !slices.Equal(got, []string{"a", "b", "c", "x"}) {
		t.Errorf("key fields %v", got)
	}
	if _, err := defined(t, "y", y, tsdb.SchemaOptions{}).Entity("1", "2", "3", -4); err != nil {
		t.Error(err)
	}
}

// TestKindsAreAddedWhereKeysFit: a schema with kinds reads text with leading zeros, byte for byte, after
// Ensure has checked that all keys fit.
func TestKindsAreAddedWhereKeysFit(t *testing.T) {
	day := gc.Class{Name: "d1000", Policy: gc.MaxAge(1000 * 24 * time.Hour)}
	for name, opts := range map[string]tsdb.SchemaOptions{
		"points": {},
		"salted": {Salts: 3},
		"heads":  {Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 1, Only: true}, Retention: day},
	} {
		text := defined(t, "readings", tsdb.Key("site", "meter"), opts)
		kinds := defined(t, "readings", tsdb.Key("site").Uint("meter", 4), opts)
		other := defined(t, "readings2", tsdb.Key("site", "meter"), opts)
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, text, other)
		_, admin := tsdbtest.Clients(t, conn)
		last := tenant.MustParse("zulu")
		for _, id := range []string{"acme", "acme2", "b", "zulu"} {
			for i := range 150 {
				part := fmt.Sprintf("%04d", i%50)
				e := tsdb.NewEntity("site", part)
				if err := text.For(store, tenant.MustParse(id)).Put(t.Context(), e, start.Add(time.Duration(i)*time.Second), "x"); err != nil {
					t.Fatal(err)
				}
			}
			if err := other.For(store, tenant.MustParse(id)).Put(t.Context(), tsdb.NewEntity("a", "not a number"), start, "x"); err != nil {
				t.Fatal(err)
			}
		}
		bad := tsdb.NewEntity("site", "7")
		if err := text.For(store, last).Put(t.Context(), bad, start, "x"); err != nil {
			t.Fatal(err)
		}
		before := tableContents(t, table, admin)
		for call, err := range map[string]error{"Ensure": store.Ensure(t.Context(), kinds), "Verify": store.Verify(t.Context(), kinds)} {
			if !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "kinds of key fields declared as ") {
				t.Errorf("%s, %s before the kinds are added: %v, want a conflict", name, call, err)
			}
		}
		if err := store.Ensure(t.Context(), kinds); err == nil || !strings.Contains(err.Error(), `tenant zulu: tsdb: invalid input: key field meter is "7"`) {
			t.Errorf("%s: %v, want an error about the key that does not fit", name, err)
		}
		if after := tableContents(t, table, admin); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: a refused Ensure changed the table", name)
		}
		must[int](t)(text.For(store, last).DeleteRange(t.Context(), bad, tsdb.AllTime()))
		stored := rows(t, table)
		if err := store.Ensure(t.Context(), kinds); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := rows(t, table); !reflect.DeepEqual(got, stored) {
			t.Errorf("%s: the stored rows changed", name)
		}
		if err := errors.Join(store.Ensure(t.Context(), kinds), store.Verify(t.Context(), kinds)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := store.Verify(t.Context(), text); !errors.Is(err, tenancy.ErrSchemaConflict) {
			t.Errorf("%s: a program that declares text is not refused: %v", name, err)
		}
		if err := store.Ensure(t.Context(), defined(t, "readings", tsdb.Key("site").Uint("meter", 5), opts)); !errors.Is(err, tenancy.ErrSchemaConflict) {
			t.Errorf("%s: a program that declares other digits is not refused: %v", name, err)
		}
		if p, err := kinds.For(store, acme).Latest(t.Context(), must[tsdb.Entity](t)(kinds.Entity("site", 49))); err != nil {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

// TestKindsOfTools: tools that know a dataset only from its catalogue entry accept and print values by their kinds.
// Erasures do so by the text of values. Export files hold the stored parts, and an import rejects parts that do not
// fit.
func TestKindsOfTools(t *testing.T) {
	kinds := defined(t, "visits", tsdb.Key().ReversedID("user").Int("level", 2), tsdb.SchemaOptions{})
	text := defined(t, "visits", tsdb.Key("user", "level"), tsdb.SchemaOptions{})
	ctx := t.Context()
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, kinds)
	repo := kinds.For(store, acme)
	for user := range 3 {
		if err := repo.Put(ctx, must[tsdb.Entity](t)(kinds.Entity(1040+user, -user)), start, "x"); err != nil {
			t.Fatal(err)
		}
	}
	var d tsdb.Dataset
	for of, err := range store.Datasets(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		d = of
	}
	e := must[tsdb.Entity](t)(d.Entity("1041", "-1"))
	var user, level string
	if err := d.Scan(e, &user, &level); err != nil || user != "1041" || level != "-1" || e.String() != "14010000000000000000/n98" {
		t.Errorf("%v reads as %s, %s, %v", e, user, level, err)
	}

	var file bytes.Buffer
	if _, err := transfer.Export(ctx, store, acme, &file, transfer.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(file.String(), `"kinds":["reversed_id","int2"]`) || !strings.Contains(file.String(), `"entity":["14010000000000000000","n98"]`) {
		t.Errorf("exported %s", &file)
	}
	fresh, _ := tsdbtest.Open(t, tsdbtest.Options{})
	if _, err := transfer.Import(ctx, fresh, acme, bytes.NewReader(file.Bytes()), transfer.ImportOptions{Create: true}); err != nil {
		t.Fatal(err)
	}
	if err := fresh.Verify(ctx, kinds); err != nil {
		t.Error(err)
	}

	older, _ := tsdbtest.Open(t, tsdbtest.Options{}, text)
	if err := text.For(older, acme).Put(ctx, tsdb.NewEntity("1041", "-1"), start, "x"); err != nil {
		t.Fatal(err)
	}
	if err := text.For(older, acme).Put(ctx, e, start, "y"); err != nil {
		t.Fatal(err)
	}
	file.Reset()
	if _, err := transfer.Export(ctx, older, acme, &file, transfer.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := transfer.Import(ctx, store, acme, &file, transfer.ImportOptions{})
	if err != nil || got.Stored != 1 || got.Refused != 1 {
		t.Errorf("an import of parts that do not fit = %+v, %v; want 1 point stored and 1 refused", got, err)
	}

	if _, err := tenants.EraseEntity(ctx, store, acme, "", map[string]string{"user": "ada", "level": "0"}, tenants.EraseOptions{Settle: 1, RowsPerSecond: -1}); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("erasure of an impossible user: %v, want ErrInvalid", err)
	}
	if _, err := tenants.EraseEntity(ctx, store, acme, "", map[string]string{"user": "1041", "level": "-1"}, tenants.EraseOptions{Settle: 1, RowsPerSecond: -1}); err != nil {
		t.Fatal(err)
	}
	if err := repo.Put(ctx, e, start, "x"); !errors.Is(err, tsdb.ErrErased) {
		t.Errorf("Put to the erased entity: %v, want ErrErased", err)
	}
	if _, err := repo.Get(context.WithoutCancel(ctx), must[tsdb.Entity](t)(kinds.Entity(1042, -2)), start); err != nil {
		t.Errorf("Put to the next entity: %v", err)
	}
}

// TestStoredBytesOfKinds compares rows and the catalogue's entry with a golden file, as TestStoredBytes does.
func TestStoredBytesOfKinds(t *testing.T) {
	c := testkit.NewClock(start)
	s := defined(t, "arrivals", kindsKey, tsdb.SchemaOptions{Salts: 16})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
	for _, level := range []int{-99, -1, 0, 42} {
		if err := s.For(store, acme).Put(t.Context(), must[tsdb.Entity](t)(s.Entity(kindsValues(level)...)), start, "x"); err != nil {
			t.Fatal(err)
		}
	}
	got := dump(t, table)
	testkit.Golden(t, "testdata/kinds.golden", got, breaksRows)
}
