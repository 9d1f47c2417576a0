package engine_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

func reopen(t *testing.T, r *rig, o engine.Options) *rig {
	t.Helper()
	r.disconnect(t)
	if err := r.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	return open(t, o)
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	r := open(t, engine.Options{Dir: dir})
	r.create(t)
	fillRows(t, r, 1000)
	if err := r.mutate("agg", addCell("sum", "n", 0, 4)); err != nil {
		t.Fatal(err)
	}
	r = reopen(t, r, engine.Options{Dir: dir})
	if err := r.mutate("agg", addCell("sum", "n", 0, 3)); err != nil {
		t.Fatal(err)
	}
	if got, want := dump(t, r, bigtable.SingleRow("agg")), []string{"agg sum:n@0=" + be(7)}; !slices.Equal(got, want) {
		t.Errorf("after reopening, got sum %q, want %q", got, want)
	}
	if got := len(dump(t, r, bigtable.PrefixRange("row"))); got != 1000 {
		t.Errorf("after reopening, got %d rows, want 1000", got)
	}
	r.createOther(t, "t2")
	r.disconnect(t)
}

func (r *rig) createOther(t *testing.T, id string) {
	t.Helper()
	if err := r.admin.CreateTable(r.ctx, id); err != nil {
		t.Fatal(err)
	}
}

func TestLocked(t *testing.T) {
	dir := t.TempDir()
	r := open(t, engine.Options{Dir: dir})
	if _, err := engine.Open(engine.Options{Dir: dir}); !errors.Is(err, engine.ErrLocked) {
		t.Errorf("opening twice: %v, want ErrLocked", err)
	}
	r = reopen(t, r, engine.Options{Dir: dir})
	r.create(t)
}

// Each write that was answered survives a crash that loses everything unsynced.
func TestSyncedBeforeAnswered(t *testing.T) {
	fs := vfs.NewCrashableMem()
	r := open(t, engine.Options{Dir: "db", FS: fs})
	r.create(t)
	var clones []*vfs.MemFS
	for i := range 20 {
		apply(t, r, fmt.Sprintf("row%02d", i), set("f", "q", 1000, "v"))
		clones = append(clones, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0}))
	}
	for i, clone := range clones {
		after := open(t, engine.Options{Dir: "db", FS: clone})
		if got := len(dump(t, after, bigtable.InfiniteRange(""))); got != i+1 {
			t.Errorf("after a crash: got %[2]d rows, want the %[1]d that were answered", i+1, got)
		}
	}
}

func TestNoSync(t *testing.T) {
	fs := vfs.NewCrashableMem()
	r := open(t, engine.Options{Dir: "db", FS: fs, NoSync: true})
	r.create(t) // changes of tables are synced even so
	apply(t, r, "row", set("f", "q", 1000, "v"))
	clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})
	after := open(t, engine.Options{Dir: "db", FS: clone})
	if got := dump(t, after, bigtable.InfiniteRange("")); len(got) != 0 {
		t.Errorf("after the loss of all unsynced data: got %q, want no rows; NoSync still syncs", got)
	}
	r = reopen(t, r, engine.Options{Dir: "db", FS: fs})
	if got := len(dump(t, r, bigtable.InfiniteRange(""))); got != 1 {
		t.Errorf("after Close: got %d rows, want 1", got)
	}
}

// damaged returns a copy of a folder with many rows, for a test to damage. With flush all rows are in table files;
// without it some are in a log only.
func damaged(t *testing.T, flush bool) (dir string) {
	t.Helper()
	dir = t.TempDir()
	r := open(t, engine.Options{Dir: dir})
	r.create(t)
	fillRows(t, r, 3000)
	if flush {
		r = reopen(t, r, engine.Options{Dir: dir})
		fillRows(t, r, 3000)
		r = reopen(t, r, engine.Options{Dir: dir})
		r.disconnect(t)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for i := range 50 {
		apply(t, r, fmt.Sprintf("x%02d", i), set("f", "q", 1000, strings.Repeat("v", 500)))
	}
	// A copy of an open folder is what a killed process leaves.
	clone := t.TempDir()
	testkit.CopyOpen(t, filepath.Join(clone, "db"), dir)
	return filepath.Join(clone, "db")
}

func files(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dir, err)
	}
	return names
}

func sizeOf(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func flip(t *testing.T, name string, at func(size int) int) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[at(len(b))] ^= 0x40
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// mustNotice opens a damaged folder and reads it. The engine must refuse to open the folder, or reads must answer
// DataLoss. They must never return fewer or other rows.
func checkDamageIsReported(t *testing.T, dir, what string) {
	t.Helper()
	e, err := engine.Open(engine.Options{Dir: dir, GCInterval: -1})
	if err != nil {
		if !errors.Is(err, engine.ErrDamaged) {
			t.Errorf("%s: Open: got %v, want ErrDamaged", what, err)
		}
		return
	}
	defer e.Close()
	r := dial(t, e)
	defer r.disconnect(t)
	_, err = read(r, r.data.Open(tableID), bigtable.InfiniteRange(""))
	if status.Code(err) != codes.DataLoss {
		t.Errorf("%s: reading: got %v, want DataLoss", what, err)
	}
	if !errors.Is(e.Err(), engine.ErrDamaged) {
		t.Errorf("%s: Err: got %v, want ErrDamaged", what, e.Err())
	}
	err = r.data.Open(tableID).Apply(r.ctx, "new", set("f", "q", 1000, "v"))
	if status.Code(err) != codes.DataLoss {
		t.Errorf("%s: writing after the engine found damage: got %v, want DataLoss", what, err)
	}
}

func TestDamageIsNoticed(t *testing.T) {
	testkit.Plain(t)
	middle := func(size int) int { return size / 2 }
	t.Run("table file", func(t *testing.T) {
		dir := damaged(t, true)
		names := files(t, dir, "*.sst")
		flip(t, names[len(names)-1], func(size int) int { return size / 3 })
		checkDamageIsReported(t, dir, "flipped bit")
	})
	t.Run("table file's end", func(t *testing.T) {
		dir := damaged(t, true)
		for _, name := range files(t, dir, "*.sst") {
			flip(t, name, func(size int) int { return size - 5 })
		}
		checkDamageIsReported(t, dir, "flipped bit")
	})
	t.Run("table file missing", func(t *testing.T) {
		dir := damaged(t, true)
		names := files(t, dir, "*.sst")
		if err := os.Remove(names[len(names)-1]); err != nil {
			t.Fatal(err)
		}
		checkDamageIsReported(t, dir, "missing file")
	})
	t.Run("table file cut short", func(t *testing.T) {
		dir := damaged(t, true)
		names := files(t, dir, "*.sst")
		if err := os.Truncate(names[len(names)-1], 1000); err != nil {
			t.Fatal(err)
		}
		checkDamageIsReported(t, dir, "short file")
	})
	t.Run("log", func(t *testing.T) {
		dir := damaged(t, false)
		name := slices.MaxFunc(files(t, dir, "*.log"), func(a, b string) int { return cmp.Compare(sizeOf(t, a), sizeOf(t, b)) })
		flip(t, name, middle)
		checkDamageIsReported(t, dir, "flipped bit")
	})
	t.Run("manifest", func(t *testing.T) {
		dir := damaged(t, true)
		names := files(t, dir, "MANIFEST-*")
		flip(t, names[len(names)-1], middle)
		checkDamageIsReported(t, dir, "flipped bit")
	})
	t.Run("manifest's last record", func(t *testing.T) {
		dir := damaged(t, true)
		names := files(t, dir, "MANIFEST-*")
		flip(t, names[len(names)-1], func(size int) int { return size - 3 })
		checkDamageIsReported(t, dir, "flipped bit")
	})
	t.Run("manifest missing", func(t *testing.T) {
		dir := damaged(t, true)
		for _, name := range files(t, dir, "MANIFEST-*") {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		checkDamageIsReported(t, dir, "missing file")
	})
	t.Run("manifest's marker missing", func(t *testing.T) {
		dir := damaged(t, true)
		for _, name := range files(t, dir, "marker.manifest.*") {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		checkDamageIsReported(t, dir, "missing file")
	})
	t.Run("undamaged", func(t *testing.T) {
		for _, flush := range []bool{true, false} {
			r := open(t, engine.Options{Dir: damaged(t, flush)})
			if got := len(dump(t, r, bigtable.PrefixRange("row"))); got != 3000 {
				t.Errorf("flush=%v: got %d rows, want 3000", flush, got)
			}
		}
	})
}

// If any byte of a log is flipped, the engine either serves all rows or does not open.
func TestLogDamageAnywhere(t *testing.T) {
	testkit.Plain(t)
	for name, flushed := range map[string]bool{"MANIFEST-*": true, "*.log": false} {
		source := damaged(t, flushed)
		intact, err := openAndCount(t, source)
		if err != nil || intact < 3000 {
			t.Fatalf("undamaged: %d rows (%v)", intact, err)
		}
		source = damaged(t, flushed)
		log := slices.MaxFunc(files(t, source, name), func(a, b string) int { return cmp.Compare(sizeOf(t, a), sizeOf(t, b)) })
		size := int(sizeOf(t, log))
		for at := 0; at < size; at += max(1, size/80) {
			dir := filepath.Join(t.TempDir(), "db")
			if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
				t.Fatal(err)
			}
			flip(t, filepath.Join(dir, filepath.Base(log)), func(int) int { return at })
			if n, err := openAndCount(t, dir); err == nil && n != intact {
				t.Errorf("%s, byte %d of %d flipped: got %d rows, want %d or ErrDamaged", name, at, size, n, intact)
			} else if err != nil && !errors.Is(err, engine.ErrDamaged) && status.Code(err) != codes.DataLoss {
				t.Errorf("%s, byte %d flipped: got %v, want ErrDamaged", name, at, err)
			}
		}
	}
}

// A log that ends in the middle of a record is what a crash leaves. The folder opens with the complete records.
func TestTornLogOpens(t *testing.T) {
	testkit.Plain(t)
	source := damaged(t, false)
	log := slices.MaxFunc(files(t, source, "*.log"), func(a, b string) int { return cmp.Compare(sizeOf(t, a), sizeOf(t, b)) })
	for cut := range 40 {
		dir := filepath.Join(t.TempDir(), "db")
		if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, filepath.Base(log))
		if err := os.Truncate(name, sizeOf(t, name)-int64(1+cut*37)); err != nil {
			t.Fatal(err)
		}
		if n, err := openAndCount(t, dir); err != nil || n < 3000+50-cut-2 {
			t.Errorf("cut by %d bytes: %d rows (%v)", 1+cut*37, n, err)
		}
	}
}

func openAndCount(t *testing.T, dir string) (int, error) {
	t.Helper()
	e, err := engine.Open(engine.Options{Dir: dir, GCInterval: -1})
	if err != nil {
		return 0, err
	}
	defer e.Close()
	r := dial(t, e)
	defer r.disconnect(t)
	got, err := read(r, r.data.Open(tableID), bigtable.InfiniteRange(""))
	return len(got), err
}

func TestVersions(t *testing.T) {
	fs := vfs.NewMem()
	r := open(t, engine.Options{Dir: "db", FS: fs})
	r.disconnect(t)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]error{"tidemark 2\n": engine.ErrVersion, "nonsense": engine.ErrDamaged} {
		f, err := fs.Create("db/TIDEMARK", vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.Write([]byte(text))
		_ = f.Close()
		if _, err := engine.Open(engine.Options{Dir: "db", FS: fs}); !errors.Is(err, want) {
			t.Errorf("marker %q: %v, want %v", text, err, want)
		}
	}
}

func TestClosed(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("second Close: got %v, want ErrClosed", err)
	}
	if err := r.mutate("r", setCell("f", "q", 0, "v")); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("writing after Close: got %v, want FailedPrecondition", err)
	}
	if _, err := r.NewReader(r.ctx, &bigtablepb.ReadRowsRequest{TableName: fullName}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("reading after Close: got %v, want FailedPrecondition", err)
	}
	if err := r.RunGC(r.ctx); err != nil && !errors.Is(err, engine.ErrClosed) {
		t.Errorf("RunGC after Close: got %v, want nil or ErrClosed", err)
	}
}
