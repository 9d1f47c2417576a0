package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// An import reports the true outcome of each point: a first-wins point is not overwritten, records are merged, and
// expired points are skipped.
func TestOutcomes(t *testing.T) {
	ctx := t.Context()
	store, _ := tsdbtest.Open(t, clock, texts, firsts, records)
	e := tsdb.NewEntity("k")
	field := func(name string, n int64) codec.Record {
		return codec.NewRecord(codec.Field{Name: name, Value: codec.Int(n)})
	}
	must(t, texts.For(store, acme).Put(ctx, tsdb.NewEntity("a", "b"), noon, "new"))
	must(t, texts.For(store, acme).Put(ctx, tsdb.NewEntity("a", "b"), noon.AddDate(0, 0, -29), "soon gone"))
	must(t, firsts.For(store, acme).Put(ctx, e, noon, "from the file"))
	must(t, firsts.For(store, acme).Put(ctx, e, noon.Add(1), "equal"))
	must(t, records.For(store, acme).Put(ctx, e, noon, field("file", 1)))
	file, _ := export(t, store, acme, transfer.ExportOptions{})

	later := tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return noon.AddDate(0, 0, 2) }}}
	other, _, table := tsdbtest.OpenTable(t, later, texts, firsts, records)
	must(t, firsts.For(other, acme).Put(ctx, e, noon, "here before"))
	must(t, firsts.For(other, acme).Put(ctx, e, noon.Add(1), "equal"))
	must(t, records.For(other, acme).Put(ctx, e, noon, field("store", 2)))
	before := dump(t, table, "acme")
	want := transfer.Imported{Points: 5, Stored: 4, Expired: 1, Complete: true}
	check := func(what string, got transfer.Imported, err error) {
		t.Helper()
		got.Checkpoint, got.Tenant = transfer.Checkpoint{}, tenant.ID{}
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", what, got, err, want)
		}
	}
	got, err := transfer.Import(ctx, other, acme, bytes.NewReader(file), transfer.ImportOptions{DryRun: true})
	check("dry run", got, err)
	if after := dump(t, table, "acme"); firstDifference(after, before) != "" {
		t.Errorf("a dry run changed the store: %s", firstDifference(after, before))
	}
	var refused []error
	got, err = transfer.Import(ctx, other, acme, bytes.NewReader(file), transfer.ImportOptions{Refused: func(err error) { refused = append(refused, err) }})
	want.Stored, want.Exists = 3, 1
	check("import", got, err)
	if len(refused) != 2 || !errors.Is(refused[0], tsdb.ErrExists) || !errors.Is(refused[1], tsdb.ErrExpired) {
		t.Errorf("refused points are %v; want one that exists and one that has expired", refused)
	}
	if le, ok := errors.AsType[*transfer.LineError](refused[0]); !ok || !bytes.Contains(bytes.Split(file, []byte("\n"))[le.Line-1], []byte("ZnJvbSB0aGUgZmlsZQ==")) {
		t.Errorf("%v names the wrong line", refused[0])
	}
	if p, err := firsts.For(other, acme).Get(ctx, e, noon); err != nil || p.Value != "here before" {
		t.Errorf("the first write is now %v, %v", p.Value, err)
	}
	p, err := records.For(other, acme).Get(ctx, e, noon)
	_, mine := p.Value.Lookup("store")
	_, theirs := p.Value.Lookup("file")
	if err != nil || !mine || !theirs {
		t.Errorf("the merged record is %v, %v", p.Value, err)
	}
}

// No point gets from one tenant to another by mistake, or to an erased tenant.
func TestWalls(t *testing.T) {
	store, _, table := tsdbtest.OpenTable(t, clock, all...)
	fill(t, store, acme, 2)
	fill(t, store, acme2, 1)
	file, _ := export(t, store, acme, transfer.ExportOptions{})
	if bytes.Contains(file, []byte("of acme2")) {
		t.Error("the file of acme holds points of acme2")
	}
	before := dump(t, table, "acme2")
	if _, err := transfer.Import(t.Context(), store, acme2, bytes.NewReader(file), transfer.ImportOptions{}); !errors.Is(err, transfer.ErrTenant) {
		t.Errorf("import of another tenant's file: %v, want ErrTenant", err)
	}
	ctx := tenant.NewContext(t.Context(), acme)
	if _, err := transfer.Export(ctx, store, acme2, new(bytes.Buffer), transfer.ExportOptions{}); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("an export with another tenant in the context: %v", err)
	}
	if _, err := transfer.Import(ctx, store, acme2, bytes.NewReader(file), transfer.ImportOptions{OtherTenant: true}); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("an import with another tenant in the context: %v", err)
	}
	if after := dump(t, table, "acme2"); firstDifference(after, before) != "" {
		t.Errorf("acme2 was changed: %s", firstDifference(after, before))
	}
	if _, err := tenants.Erase(t.Context(), store, acme, tenants.EraseOptions{Settle: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.Export(t.Context(), store, acme, new(bytes.Buffer), transfer.ExportOptions{}); !errors.Is(err, tsdb.ErrErased) {
		t.Errorf("export of an erased tenant: %v, want ErrErased", err)
	}
	if _, err := transfer.Import(t.Context(), store, acme, bytes.NewReader(file), transfer.ImportOptions{}); !errors.Is(err, tsdb.ErrErased) {
		t.Errorf("import into an erased tenant: %v, want ErrErased", err)
	}
	if rows := dump(t, table, "acme"); len(rows) > 0 {
		t.Errorf("the erased tenant has %v", rows)
	}
	one := map[string]string{"k": "a"}
	if _, err := tenants.EraseEntity(t.Context(), store, acme2, "", one, tenants.EraseOptions{Settle: 1}); err != nil {
		t.Fatal(err)
	}
	got, err := transfer.Import(t.Context(), store, acme2, bytes.NewReader(file), transfer.ImportOptions{OtherTenant: true})
	if err != nil || got.Erased != 12 || got.Exists != 8 || got.Stored != got.Points-20 {
		t.Errorf("an import with an erased entity: %+v, %v; want its 12 points skipped, and 8 that differ from the first write", got, err)
	}
}

// TestImportAdmitsFirst: what a context or an erasure forbids is refused before a dataset is created, and also if the
// file has no point.
func TestImportAdmitsFirst(t *testing.T) {
	from, _ := tsdbtest.Open(t, clock, all...)
	none, _ := export(t, from, acme, transfer.ExportOptions{})
	fill(t, from, acme, 1)
	full, _ := export(t, from, acme, transfer.ExportOptions{})
	options := clock
	options.RequireTenant = true
	to, _ := tsdbtest.Open(t, options, floats)
	inAcme := tenant.NewContext(t.Context(), acme)
	refused := func(ctx context.Context, want error) {
		t.Helper()
		for _, file := range [][]byte{none, full} {
			if _, err := transfer.Import(ctx, to, acme, bytes.NewReader(file), transfer.ImportOptions{Create: true}); !errors.Is(err, want) {
				t.Errorf("import of %d bytes: %v, want %v", len(file), err, want)
			}
		}
		for d, err := range to.Datasets(t.Context()) {
			if err != nil || d.Name() != "floats" {
				t.Errorf("the catalogue has %v, %v", d, err)
			}
		}
	}
	refused(t.Context(), tsdb.ErrNoTenant)
	refused(tenant.NewContext(t.Context(), acme2), tsdb.ErrTenantMismatch)
	if _, err := tenants.Erase(inAcme, to, acme, tenants.EraseOptions{Settle: 1}); err != nil {
		t.Fatal(err)
	}
	refused(inAcme, tsdb.ErrErased)
}

// A file with a dataset of another shape than the store's is refused before anything is stored.
func TestConflict(t *testing.T) {
	store, _ := tsdbtest.Open(t, clock, all...)
	fill(t, store, acme, 1)
	file, _ := export(t, store, acme, transfer.ExportOptions{})
	salted := tsdb.MustDefine("floats", tsdb.Key("k"), codec.Float64(), tsdb.SchemaOptions{Precision: tsdb.Microseconds, Salts: 2})
	retagged := tsdb.MustDefine("ints", tsdb.Key("k"), codec.Float64(), tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2}})
	for _, create := range []bool{false, true} {
		other, _ := tsdbtest.Open(t, clock, salted)
		opts := transfer.ImportOptions{Create: create}
		if _, err := transfer.Import(t.Context(), other, acme, bytes.NewReader(file), opts); !errors.Is(err, tenancy.ErrSchemaConflict) {
			t.Errorf("other salts, Create %v: %v, want a conflict", create, err)
		}
		opts.Datasets = []string{"ints"}
		if _, err := transfer.Import(t.Context(), other, acme, bytes.NewReader(file), opts); create != (err == nil) {
			t.Errorf("only a dataset that is missing, Create %v: %v", create, err)
		}
	}
	other, _ := tsdbtest.Open(t, clock, retagged)
	opts := transfer.ImportOptions{Create: true, Datasets: []string{"ints"}}
	if _, err := transfer.Import(t.Context(), other, acme, bytes.NewReader(file), opts); !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "codec tag i64") {
		t.Errorf("another tag: %v, want an error that names it", err)
	}
	opts.Extend = true
	if _, err := transfer.Import(t.Context(), other, acme, bytes.NewReader(file), opts); err != nil {
		t.Errorf("another tag, with Extend: %v", err)
	}
}

// TestImportStopsNoOtherProgram: a tenant's file has a retention class that the dataset lacks. Without Extend the
// import is refused, with the class and its policy, and programs that declare the dataset still start.
func TestImportStopsNoOtherProgram(t *testing.T) {
	define := func(classes ...gc.Class) *tsdb.Schema[string] {
		return tsdb.MustDefine("notes", tsdb.Key("k"), codec.String(), tsdb.SchemaOptions{Retention: d30, Classes: classes})
	}
	from, _ := tsdbtest.Open(t, clock, define(d90))
	must(t, define(d90).For(from, acme).Put(t.Context(), tsdb.NewEntity("a"), noon, "v"))
	file, _ := export(t, from, acme, transfer.ExportOptions{})
	store, _ := tsdbtest.Open(t, clock, define())
	for _, dry := range []bool{true, false} {
		_, err := transfer.Import(t.Context(), store, acme, bytes.NewReader(file), transfer.ImportOptions{Create: true, DryRun: dry})
		if !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "dataset notes: retention class d90 (maxage=90d)") {
			t.Errorf("import, dry %v: %v, want a conflict that names the class", dry, err)
		}
	}
	must(t, store.Verify(t.Context(), define()))
	if got, err := transfer.Import(t.Context(), store, acme, bytes.NewReader(file), transfer.ImportOptions{Extend: true}); err != nil || got.Stored != 1 {
		t.Errorf("import with Extend: %+v, %v", got, err)
	}
	must(t, store.Verify(t.Context(), define(d90)))
}

// If the service fails, the import returns the line, and continuing stores the rest.
func TestImportThroughFaults(t *testing.T) {
	store, _, table := tsdbtest.OpenTable(t, clock, texts)
	for i := range 2500 {
		must(t, texts.For(store, acme).Put(t.Context(), tsdb.NewEntity("a", "b"), noon.Add(-time.Duration(i)), "v"))
	}
	file, _ := export(t, store, acme, transfer.ExportOptions{})
	other, conn, into := tsdbtest.OpenTable(t, clock, texts)
	conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.MutateRows).Skip(1))
	got, err := transfer.Import(t.Context(), other, acme, bytes.NewReader(file), transfer.ImportOptions{})
	le, ok := errors.AsType[*transfer.LineError](err)
	if !ok || le.Line != got.Checkpoint.Line+1 || !errors.Is(err, tsdb.ErrRejected) || got.Stored != 1000 || got.Complete {
		t.Fatalf("refused by the service: %+v, %v", got, err)
	}
	conn.Clear()
	got, err = transfer.Import(t.Context(), other, acme, bytes.NewReader(file), transfer.ImportOptions{Continue: got.Checkpoint})
	if err != nil || got.Before != 1000 || got.Stored != 1500 {
		t.Errorf("continued import: %+v, %v", got, err)
	}
	if d := firstDifference(dump(t, into, "acme"), dump(t, table, "acme")); d != "" {
		t.Error(d)
	}
}

// An export over a connection that is cut repeatedly holds every point once.
func TestExportThroughFaults(t *testing.T) {
	store, conn := tsdbtest.Open(t, clock, all...)
	fill(t, store, acme, 150)
	want, _ := export(t, store, acme, transfer.ExportOptions{})
	conn.Inject(tsdbtest.CutStream(700, codes.Unavailable).On(tsdbtest.ReadRows).Times(5))
	if got, _ := export(t, store, acme, transfer.ExportOptions{}); !bytes.Equal(got, want) {
		t.Error("the file differs from one without faults")
	}
}

// If the writer fails, or writes less than given, the export returns its error.
func TestExportToBrokenWriter(t *testing.T) {
	store, _ := tsdbtest.Open(t, clock, texts)
	must(t, texts.For(store, acme).Put(t.Context(), tsdb.NewEntity("a", "b"), noon, "v"))
	full := errors.New("disk full")
	if _, err := transfer.Export(t.Context(), store, acme, broken{full}, transfer.ExportOptions{}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// Invalid arguments are rejected by name.
func TestRefusedArguments(t *testing.T) {
	store, _ := tsdbtest.Open(t, clock, texts)
	for _, opts := range []transfer.ExportOptions{
		{Datasets: []string{"other"}},
		{Entities: []tsdb.Entity{tsdb.NewEntity("one")}},
		{Entities: []tsdb.Entity{tsdb.NewEntity("a", "\xff")}},
		{Interval: tsdb.Since(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))},
		{Interval: tsdb.Between(time.Unix(2, 0), time.Unix(1, 0))},
		{Continue: transfer.Checkpoint{Line: 5}},
	} {
		if _, err := transfer.Export(t.Context(), store, acme, new(bytes.Buffer), opts); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("Export with %+v: %v", opts, err)
		}
	}
	if _, err := transfer.Export(t.Context(), store, tenant.ID{}, new(bytes.Buffer), transfer.ExportOptions{}); !errors.Is(err, tenant.ErrInvalid) {
		t.Errorf("Export of the zero tenant: %v", err)
	}
	for _, text := range []string{"", "x", "hello\n", `{"tidemark":"export","version":2,"crc":"00000000"}` + "\n", "temp,x=1 y=2\n\n\n\n\n"} {
		_, err := transfer.Import(t.Context(), store, acme, bytes.NewReader([]byte(text)), transfer.ImportOptions{})
		if !errors.Is(err, transfer.ErrVersion) && !errors.Is(err, transfer.ErrDamaged) {
			t.Errorf("Import of %q: %v", text, err)
		}
	}
	if _, err := transfer.Export(t.Context(), nil, acme, new(bytes.Buffer), transfer.ExportOptions{}); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("Export without a store: %v", err)
	}
	must(t, store.Close())
	if _, err := transfer.Import(t.Context(), store, acme, new(bytes.Buffer), transfer.ImportOptions{}); !errors.Is(err, tsdb.ErrClosed) {
		t.Errorf("Import into a closed store: %v", err)
	}
}

// TestPointsAfterTheYear9999: an export has points that writes refuse now. An import counts them as refused and stores
// the others.
func TestPointsAfterTheYear9999(t *testing.T) {
	store, _, table := tsdbtest.OpenTable(t, clock, floats)
	must(t, floats.For(store, acme).Put(t.Context(), tsdb.NewEntity("a"), noon, 1))
	far := time.Date(58803, 2, 28, 1, 2, 3, 4000, time.UTC)
	m := bigtable.NewMutation()
	m.Set("keep", "p:f64", bigtable.Timestamp(far.UnixMilli()*1000), make([]byte, 8))
	must(t, table.Apply(t.Context(), fmt.Sprintf("acme#floats#a#%019d", (1<<63-1)-far.UnixMicro()), m))
	file, exported := export(t, store, acme, transfer.ExportOptions{})
	if exported.Points != 2 || !strings.Contains(string(file), fmt.Sprintf(`"units":%d`, far.UnixMicro())) {
		t.Errorf("exported %+v:\n%s\nwant both points", exported, file)
	}
	if checked, err := transfer.Check(t.Context(), bytes.NewReader(file), nil); err != nil || checked.Points != 2 {
		t.Errorf("Check = %+v, %v; want 2 points", checked, err)
	}
	to, _ := tsdbtest.Open(t, clock, floats)
	var refused error
	got, err := transfer.Import(t.Context(), to, acme, bytes.NewReader(file), transfer.ImportOptions{Refused: func(err error) { refused = err }})
	if err != nil || got.Stored != 1 || got.Refused != 1 || !strings.Contains(fmt.Sprint(refused), "time is +058803-02-28T01:02:03.000004Z; want 1970-01-01T00:00:00Z to 9999-12-31") {
		t.Errorf("Import = %+v, %v, and refuses a point with %v; want 1 stored and 1 refused", got, err, refused)
	}
}
