package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	acme  = tenant.MustParse("acme")
	acme2 = tenant.MustParse("acme2")
	noon  = time.Date(2026, 6, 1, 12, 0, 0, 123456789, time.UTC)
	clock = tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return noon }}}

	d30 = gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}
	d90 = gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)}

	texts   = tsdb.MustDefine("texts", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{Retention: d30, FormerClasses: []gc.Class{d90}})
	older   = tsdb.MustDefine("texts", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{Retention: d90, FormerClasses: []gc.Class{d30}})
	jsons   = tsdb.MustDefine("jsons", tsdb.Key("k"), codec.JSON[any](), tsdb.SchemaOptions{Salts: 16})
	floats  = tsdb.MustDefine("floats", tsdb.Key("k"), codec.Float64(), tsdb.SchemaOptions{Precision: tsdb.Microseconds})
	ints    = tsdb.MustDefine("ints", tsdb.Key("k"), codec.Int64(), tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2}})
	heads   = tsdb.MustDefine("heads", tsdb.Key("k"), codec.Bytes(), tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Salts: 3, Head: tsdb.Head{Points: 3, Only: true}})
	firsts  = tsdb.MustDefine("firsts", tsdb.Key("k"), codec.String(), tsdb.SchemaOptions{FirstWins: true})
	records = tsdb.MustDefine("records", tsdb.Key("k"), codec.Records(), tsdb.SchemaOptions{Merge: true})

	all = []tsdb.Dataset{texts, jsons, floats, ints, heads, firsts, records}
)

var parts = []string{"a", "a b", "#%!$&", "\x00\x1f\x7f", `"\`, "東京", "<é>\u2028", "\ufffd", "9223372036854775807"}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill stores n points for each entity of all datasets of a tenant.
func fill(t *testing.T, store *tsdb.Store, id tenant.ID, n int) (points int64) {
	t.Helper()
	ctx := t.Context()
	values := []any{1.5, "x\n<y>", nil, map[string]any{"b": []any{true}}, []any{}, "\u2028"}
	for i, part := range parts {
		for j := range n {
			at := noon.Add(-time.Duration(j) * time.Minute).Add(-time.Duration(i*j) * 1007 * time.Nanosecond)
			label := fmt.Sprintf("%s %d of %s", part, j, id)
			must(t, texts.For(store, id).Put(ctx, tsdb.NewEntity(part, "x"), at, label))
			must(t, jsons.For(store, id).Put(ctx, tsdb.NewEntity(part), at, values[(i+j)%len(values)]))
			must(t, floats.For(store, id).Put(ctx, tsdb.NewEntity(part), at, float64(i)+float64(j)/3))
			must(t, ints.For(store, id).Put(ctx, tsdb.NewEntity(part), at, int64(i-j)))
			must(t, firsts.For(store, id).Put(ctx, tsdb.NewEntity(part), at, label))
			must(t, records.For(store, id).Put(ctx, tsdb.NewEntity(part), at, codec.NewRecord(codec.Field{Name: label, Value: codec.Int(int64(j))})))
			points += 6
		}
		for j := range min(n, 3) {
			must(t, heads.For(store, id).Put(ctx, tsdb.NewEntity(part), noon.Add(time.Duration(j)*time.Second), []byte{byte(i), 0, 0xff}))
			points++
		}
	}
	must(t, texts.For(store, id).Put(ctx, tsdb.NewEntity("edge", "first"), noon.AddDate(0, 0, -29), ""))
	must(t, older.For(store, id).Put(ctx, tsdb.NewEntity("edge", "old"), noon.AddDate(0, 0, -60), "older class"))
	must(t, floats.For(store, id).Put(ctx, tsdb.NewEntity("edge"), time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC), -1))
	must(t, floats.For(store, id).Put(ctx, tsdb.NewEntity("edge"), time.Unix(0, 0), 0))
	return points + 4
}

// dump returns all cells of a tenant, one per line.
func dump(t *testing.T, table *bigtable.Table, id string) []string {
	t.Helper()
	var out []string
	must(t, table.ReadRows(t.Context(), bigtable.PrefixRange(id+"#"), func(row bigtable.Row) bool {
		if strings.HasSuffix(row.Key(), "!fields#") { // written in the background
			return true
		}
		for _, family := range slices.Sorted(maps.Keys(row)) {
			keep := len(row[family])
			if _, n, head := strings.Cut(family, ".h"); head { // older versions may not be collected yet
				keep = min(keep, int(n[0]-'0'))
			}
			for _, item := range row[family][:keep] {
				out = append(out, fmt.Sprintf("%q %s %d %q", strings.TrimPrefix(row.Key(), id), item.Column, item.Timestamp, item.Value))
			}
		}
		return true
	}))
	return out
}

func export(t *testing.T, store *tsdb.Store, id tenant.ID, opts transfer.ExportOptions) ([]byte, transfer.Exported) {
	t.Helper()
	var file bytes.Buffer
	got, err := transfer.Export(t.Context(), store, id, &file, opts)
	must(t, err)
	return file.Bytes(), got
}

// Importing a tenant's file into an empty store gives the same cells, also for a tenant with another name.
func TestRoundTrip(t *testing.T) {
	store, _, table := tsdbtest.OpenTable(t, clock, all...)
	points := fill(t, store, acme, 4)
	fill(t, store, acme2, 2)
	file, exported := export(t, store, acme, transfer.ExportOptions{})
	if exported.Points != points || exported.Bytes != int64(len(file)) || exported.Lines != int64(bytes.Count(file, []byte("\n"))) {
		t.Errorf("exported %+v of %d points, %d bytes", exported, points, len(file))
	}
	if checked, err := transfer.Check(t.Context(), bytes.NewReader(file), nil); err != nil || checked.Points != points {
		t.Errorf("Check = %+v, %v", checked, err)
	}
	if again, _ := export(t, store, acme, transfer.ExportOptions{}); !bytes.Equal(again, file) {
		t.Error("two exports of the same points at the same time differ")
	}
	want := dump(t, table, "acme")
	for _, id := range []tenant.ID{acme, tenant.MustParse("acme.new")} {
		other, _, into := tsdbtest.OpenTable(t, clock)
		for range 2 { // a second import changes nothing
			got, err := transfer.Import(t.Context(), other, id, bytes.NewReader(file), transfer.ImportOptions{Create: true, OtherTenant: true})
			if err != nil || got.Stored != points || got.Points != points || !got.Complete {
				t.Fatalf("Import into %s = %+v, %v; want %d points stored", id, got, err, points)
			}
			if rows := dump(t, into, id.String()); !slices.Equal(rows, want) {
				t.Fatalf("%s differs from what was exported:\n%s", id, firstDifference(rows, want))
			}
		}
		must(t, other.Verify(t.Context(), all...))
		p, err := texts.For(other, id).Get(t.Context(), tsdb.NewEntity("edge", "old"), noon.AddDate(0, 0, -60))
		if err != nil || p.Value != "older class" {
			t.Errorf("a point of a former class is %+v, %v", p, err)
		}
	}
}

func firstDifference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return "missing " + want[i]
		case i >= len(want):
			return "too much " + got[i]
		case got[i] != want[i]:
			return got[i] + "\nwant " + want[i]
		}
	}
	return ""
}

// A file with any changed byte is refused, with the number of its line, before any point of its block is stored.
func TestDamagedFileIsRefused(t *testing.T) {
	store, _ := tsdbtest.Open(t, clock, texts, jsons)
	for i := range 3 {
		must(t, texts.For(store, acme).Put(t.Context(), tsdb.NewEntity("a", "b"), noon.Add(time.Duration(-i)*time.Second), "value"))
		must(t, jsons.For(store, acme).Put(t.Context(), tsdb.NewEntity("c"), noon.Add(time.Duration(-i)*time.Second), map[string]any{"v": i}))
	}
	file, _ := export(t, store, acme, transfer.ExportOptions{})
	refused := func(what string, damaged []byte, line int64) {
		t.Helper()
		_, err := transfer.Check(t.Context(), bytes.NewReader(damaged), nil)
		le, ok := errors.AsType[*transfer.LineError](err)
		if !ok || le.Line != line || !errors.Is(err, transfer.ErrDamaged) && !errors.Is(err, transfer.ErrVersion) {
			t.Fatalf("%s: error %v; want it to name line %d", what, err, line)
		}
	}
	line := int64(1)
	for i, c := range file {
		for _, flip := range []byte{0x01, 0x20, 0x80} {
			damaged := bytes.Clone(file)
			damaged[i] ^= flip
			want := line
			refused(fmt.Sprintf("byte %d ^ %#x", i, flip), damaged, want)
		}
		if c == '\n' {
			line++
		}
	}
	text := bytes.SplitAfter(file, []byte("\n"))
	text = text[:len(text)-1]
	for i := range text {
		n := int64(i + 1)
		refused(fmt.Sprintf("line %d missing", n), bytes.Join(slices.Delete(slices.Clone(text), i, i+1), nil), n)
		refused(fmt.Sprintf("line %d twice", n), bytes.Join(slices.Insert(slices.Clone(text), i, text[i]), nil), n+1)
		if i > 0 {
			swapped := slices.Clone(text)
			swapped[i-1], swapped[i] = text[i], text[i-1]
			refused(fmt.Sprintf("lines %d and %d swapped", n-1, n), bytes.Join(swapped, nil), n-1)
		}
	}
	line = 1
	for i, c := range file[:len(file)-1] {
		if i > 0 {
			refused(fmt.Sprintf("cut at %d", i), file[:i], line)
		}
		if c == '\n' {
			line++
		}
	}
}

// An interrupted export continues after its last whole block, and the file equals an uninterrupted one.
func TestExportContinues(t *testing.T) {
	testkit.Plain(t)
	store, _ := tsdbtest.Open(t, clock, all...)
	fill(t, store, acme, 300) // 9 entities in 6 datasets
	whole, exported := export(t, store, acme, transfer.ExportOptions{})
	blocks := bytes.Count(whole, []byte(`{"sum":`))
	if blocks < 5 {
		t.Fatalf("the file has only %d blocks", blocks)
	}
	for _, cut := range []int{0, 1, 500, len(whole) / 3, len(whole) / 2, len(whole) * 4 / 5, len(whole) - 1, len(whole)} {
		at, complete, err := transfer.Recover(t.Context(), bytes.NewReader(whole[:cut]), nil)
		if err != nil || complete != (cut == len(whole)) {
			t.Fatalf("Recover of %d bytes = %+v, %v, %v", cut, at, complete, err)
		}
		if complete {
			continue
		}
		var rest bytes.Buffer
		rest.Write(whole[:at.Offset])
		got, err := transfer.Export(t.Context(), store, acme, &rest, transfer.ExportOptions{Continue: at})
		if err != nil || !bytes.Equal(rest.Bytes(), whole) || got.Points != exported.Points || !maps.Equal(got.Datasets, exported.Datasets) {
			t.Errorf("continued at line %d of %d: %+v, %v; want %+v and the same file", at.Line, exported.Lines, got, err, exported)
		}
		if at.Line == 0 {
			continue
		}
		if _, err := transfer.Export(t.Context(), store, acme2, &rest, transfer.ExportOptions{Continue: at}); !errors.Is(err, transfer.ErrTenant) {
			t.Errorf("continued for another tenant: %v, want ErrTenant", err)
		}
	}
}

// Unreadable points at the end of an export count once, wherever it is interrupted.
func TestExportContinuesBehindUnreadable(t *testing.T) {
	store, _, table := tsdbtest.OpenTable(t, clock, floats)
	at := noon.Add(-time.Minute)
	for _, name := range []string{"a", "b", "c"} {
		must(t, floats.For(store, acme).Put(t.Context(), tsdb.NewEntity(name), at, 1))
	}
	for _, name := range []string{"a", "c"} { // a codec that only another program knows
		set := bigtable.NewMutation()
		set.DeleteCellsInColumn("keep", "p:f64")
		set.Set("keep", "p:other", bigtable.Time(at), nil)
		must(t, table.ReadRows(t.Context(), bigtable.PrefixRange("acme#floats#"+name), func(row bigtable.Row) bool {
			return table.Apply(t.Context(), row.Key(), set) == nil
		}))
	}
	whole, exported := export(t, store, acme, transfer.ExportOptions{})
	if exported.Unreadable != 2 || exported.Points != 1 {
		t.Fatalf("exported %+v, want 1 point and 2 unreadable ones", exported)
	}
	for cut := len(whole) - 1; ; {
		from, _, err := transfer.Recover(t.Context(), bytes.NewReader(whole[:cut]), nil)
		must(t, err)
		if from.Line == 0 {
			return
		}
		rest := bytes.NewBuffer(bytes.Clone(whole[:from.Offset]))
		if got, err := transfer.Export(t.Context(), store, acme, rest, transfer.ExportOptions{Continue: from}); err != nil || !bytes.Equal(rest.Bytes(), whole) {
			t.Errorf("continued at line %d: %+v, %v; want %+v", from.Line, got, err, exported)
		}
		cut = int(from.Offset) - 1
	}
}

// A block may end within the points of one head in a heads-only dataset. The continued export has the others exactly
// once.
func TestExportContinuesWithinHead(t *testing.T) {
	store, _ := tsdbtest.Open(t, clock, heads)
	var points []tsdb.Point[[]byte]
	for i := range 400 {
		for j := range 3 {
			points = append(points, tsdb.Point[[]byte]{Entity: tsdb.NewEntity(fmt.Sprint(i)), Time: noon.Add(time.Duration(j) * time.Second), Value: []byte{byte(j)}})
		}
	}
	if _, err := heads.For(store, acme).PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	whole, _ := export(t, store, acme, transfer.ExportOptions{})
	at, _, err := transfer.Recover(t.Context(), bytes.NewReader(whole[:len(whole)-1]), nil)
	must(t, err)
	at, _, err = transfer.Recover(t.Context(), bytes.NewReader(whole[:at.Offset-1]), nil)
	if err != nil || at.Points != 1000 {
		t.Fatalf("the first block ends at %+v, %v; want after 1000 points", at, err)
	}
	rest := bytes.NewBuffer(bytes.Clone(whole[:at.Offset]))
	if _, err := transfer.Export(t.Context(), store, acme, rest, transfer.ExportOptions{Continue: at}); err != nil || !bytes.Equal(rest.Bytes(), whole) {
		t.Errorf("the continued file differs, %v", err)
	}
}

// An export with options contains only the selected points, also if it is continued.
func TestSelection(t *testing.T) {
	store, _ := tsdbtest.Open(t, clock, all...)
	fill(t, store, acme, 300)
	in := tsdb.Between(noon.Add(-200*time.Minute), noon.Add(-99*time.Minute))
	for _, opts := range []transfer.ExportOptions{
		{Interval: in},
		{Interval: in, Datasets: []string{"jsons", "ints"}},
		{Entities: []tsdb.Entity{tsdb.NewEntity("東京"), tsdb.NewEntity("a"), tsdb.NewEntity("a b")}},
		{Entities: []tsdb.Entity{tsdb.NewEntity("a b", "x")}, Interval: in},
		{Interval: tsdb.Until(time.Unix(-1, 0))},
		{Datasets: []string{}},
	} {
		want := 0
		for _, d := range []struct {
			name  string
			parts int
			read  func(e tsdb.Entity) int
		}{
			{"texts", 2, counter(t, texts.For(store, acme), opts.Interval)},
			{"jsons", 1, counter(t, jsons.For(store, acme), opts.Interval)},
			{"floats", 1, counter(t, floats.For(store, acme), opts.Interval)},
			{"ints", 1, counter(t, ints.For(store, acme), opts.Interval)},
			{"heads", 1, counter(t, heads.For(store, acme), opts.Interval)},
			{"firsts", 1, counter(t, firsts.For(store, acme), opts.Interval)},
			{"records", 1, counter(t, records.For(store, acme), opts.Interval)},
		} {
			if opts.Datasets != nil && !slices.Contains(opts.Datasets, d.name) {
				continue
			}
			entities := []tsdb.Entity{tsdb.NewEntity("edge"), tsdb.NewEntity("edge", "first"), tsdb.NewEntity("edge", "old")}
			for _, p := range parts {
				entities = append(entities, tsdb.NewEntity(p), tsdb.NewEntity(p, "x"))
			}
			for _, e := range entities {
				if len(e.Parts()) == d.parts && (opts.Entities == nil || slices.Contains(opts.Entities, e)) {
					want += d.read(e)
				}
			}
		}
		whole, got := export(t, store, acme, opts)
		if got.Points != int64(want) {
			t.Errorf("%+v: %d points; want %d", opts, got.Points, want)
		}
		at, _, err := transfer.Recover(t.Context(), bytes.NewReader(whole[:len(whole)*2/3]), nil)
		must(t, err)
		if at.Line == 0 {
			continue
		}
		rest := bytes.NewBuffer(bytes.Clone(whole[:at.Offset]))
		if _, err := transfer.Export(t.Context(), store, acme, rest, transfer.ExportOptions{Continue: at}); err != nil || !bytes.Equal(rest.Bytes(), whole) {
			t.Errorf("%+v: the file continued at line %d differs, %v", opts, at.Line, err)
		}
	}
}

func counter[T any](t *testing.T, r *tsdb.Repository[T], in tsdb.Interval) func(tsdb.Entity) int {
	return func(e tsdb.Entity) (n int) {
		for _, err := range r.Range(t.Context(), e, in) {
			must(t, err)
			n++
		}
		return n
	}
}

// An interrupted import continues after its checkpoint. A checkpoint of another file is refused.
func TestImportContinues(t *testing.T) {
	store, _, table := tsdbtest.OpenTable(t, clock, all...)
	points := fill(t, store, acme, 60)
	file, _ := export(t, store, acme, transfer.ExportOptions{})
	other, _, into := tsdbtest.OpenTable(t, clock)
	ctx, cancel := context.WithCancel(t.Context())
	opts := transfer.ImportOptions{Create: true}
	opts.Progress = func(at transfer.Imported) {
		if at.Points > 1500 {
			cancel()
		}
	}
	half, err := transfer.Import(ctx, other, acme, bytes.NewReader(file), opts)
	if !errors.Is(err, context.Canceled) || half.Complete || half.Points != half.Checkpoint.Points {
		t.Fatalf("interrupted: %+v, %v", half, err)
	}
	opts.Progress, opts.Continue = nil, half.Checkpoint
	rest, err := transfer.Import(t.Context(), other, acme, bytes.NewReader(file), opts)
	if err != nil || rest.Before != half.Stored || rest.Before+rest.Stored != points || !rest.Complete {
		t.Errorf("continued: %+v, %v; want %d points in all", rest, err, points)
	}
	if got, want := dump(t, into, "acme"), dump(t, table, "acme"); !slices.Equal(got, want) {
		t.Error(firstDifference(got, want))
	}
	opts.Continue.Sum = strings.Repeat("0", 64)
	if _, err := transfer.Import(t.Context(), other, acme, bytes.NewReader(file), opts); !errors.Is(err, errtype.ErrCheckpoint) {
		t.Errorf("a checkpoint with another sum: %v, want ErrContinue", err)
	}
	for _, line := range []int64{half.Checkpoint.Line - 1, 1 << 40} {
		opts.Continue = transfer.Checkpoint{Line: line, Sum: half.Checkpoint.Sum}
		if _, err := transfer.Import(t.Context(), other, acme, bytes.NewReader(file), opts); !errors.Is(err, errtype.ErrCheckpoint) {
			t.Errorf("a checkpoint at line %d: %v, want ErrContinue", line, err)
		}
	}
}
