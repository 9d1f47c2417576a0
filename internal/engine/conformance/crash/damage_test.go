package crash

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

var damagePerFile = flag.Int("crash.damage", 10, "bytes that are flipped in each file, one at a time")

const rowsOnDisk = 400

// makeStore fills a folder, copies it while the store is open, with its log, and returns the copy's files.
func makeStore(t *testing.T) (files map[string][]byte) {
	t.Helper()
	dir := t.TempDir()
	eng, err := engine.Open(engine.Options{Dir: dir, MemTableBytes: 64 << 10, GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	tbl, disconnect, err := connect(t.Context(), eng)
	if err != nil {
		t.Fatal(err)
	}
	defer disconnect()
	for n := range uint64(rowsOnDisk) {
		key := fmt.Sprintf("r%06d", n)
		if err := tbl.Apply(t.Context(), key, cells(n, key)); err != nil {
			t.Fatal(err)
		}
	}
	// A flush or a compaction between two files would leave a copy that no crash leaves.
	for range 100 {
		files = readFolder(t, dir)
		if maps.EqualFunc(files, readFolder(t, dir), bytes.Equal) {
			return files
		}
	}
	t.Fatal("the folder does not come to rest")
	return nil
}

func readFolder(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range entries {
		if f.IsDir() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // a compaction removed it meanwhile
		}
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name()] = b
	}
	return out
}

func writeFolder(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// look opens a folder and reads all of it. rows is the number of rows if they are the first that were written, all
// complete. reported is an error of the engine; wrong says that the engine returned wrong data.
func inspectFolder(t *testing.T, dir string) (rows int, reported, wrong error) {
	begun := time.Now()
	eng, err := engine.Open(engine.Options{
		Dir: dir, GCInterval: -1,
		Steady: func() time.Duration { return time.Since(begun) }, // the folder has no stored time yet
	})
	if err != nil {
		return 0, err, nil
	}
	defer eng.Close()
	tbl, disconnect, err := connect(t.Context(), eng)
	if err != nil {
		return 0, err, nil
	}
	defer disconnect()
	read := func() (rows int, reported, wrong error) {
		reported = tbl.ReadRows(t.Context(), bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
			if want := fmt.Sprintf("r%06d", rows); r.Key() != want {
				wrong = fmt.Errorf("got row %s, want %s", r.Key(), want)
				return false
			}
			if v, err := version(r); err != nil || v != uint64(rows) {
				wrong = fmt.Errorf("row %s: got version %d, %w", r.Key(), v, err)
			}
			rows++
			return wrong == nil
		})
		return rows, reported, wrong
	}
	rows, reported, wrong = read()
	if wrong != nil || reported != nil {
		return rows, reported, wrong
	}
	// Writes, garbage collection and compaction must not lose any of the readable rows.
	for i := range 3 {
		if err := tbl.Apply(t.Context(), fmt.Sprintf("z%d", i), cells(1, "z")); err != nil {
			return rows, err, nil
		}
	}
	if err := eng.RunGC(t.Context()); err != nil {
		return rows, err, nil
	}
	m := bigtable.NewMutation()
	m.DeleteRow()
	for i := range 3 {
		if err := tbl.Apply(t.Context(), fmt.Sprintf("z%d", i), m); err != nil {
			return rows, err, nil
		}
	}
	again, reported, wrong := read()
	if reported == nil && wrong == nil && again != rows {
		wrong = fmt.Errorf("got %d rows, and %d after some writes", rows, again)
	}
	return again, reported, wrong
}

// TestDamage checks that a flipped byte, a truncated or a missing file is reported, when the store opens or when the
// data is read, and that only written data is returned. The end of a log is the exception: a truncated log looks like
// one that a crash has torn, so the rows before its end are returned.
func TestDamage(t *testing.T) {
	testkit.Plain(t)
	files := makeStore(t)
	if rows, reported, wrong := inspectFolder(t, writeFolder(t, files)); rows != rowsOnDisk || reported != nil || wrong != nil {
		t.Fatalf("undamaged copy: got %d of %d rows, %v, %v", rows, rowsOnDisk, reported, wrong)
	}
	r := rand.New(rand.NewPCG(*seed, 9))
	outcomes := map[string]int{}
	try := func(what, name string, damaged []byte, gone bool) {
		copied := maps.Clone(files)
		if copied[name] = damaged; gone {
			delete(copied, name)
		}
		rows, reported, wrong := inspectFolder(t, writeFolder(t, copied))
		kind := name
		if i := strings.IndexAny(name, "-."); i >= 0 {
			if kind = name[:i]; strings.Contains(name, ".") && !strings.HasPrefix(name, "marker") {
				kind = filepath.Ext(name)
			}
		}
		switch {
		case wrong != nil:
			t.Errorf("%s of %s: got wrong data: %v", what, name, wrong)
		case reported != nil:
			outcomes[kind+" reported"]++
			if !errors.Is(reported, engine.ErrDamaged) && !errors.Is(reported, engine.ErrVersion) && status.Code(reported) != codes.DataLoss {
				t.Errorf("%s of %s: got an error other than damage: %v", what, name, reported)
			}
		case rows == rowsOnDisk:
			outcomes[kind+" harmless"]++
		case kind == ".log" && what == "a cut":
			outcomes[kind+" shorter"]++
		default:
			t.Errorf("%s of %s: got no error, but %d of %d rows are missing", what, name, rowsOnDisk-rows, rowsOnDisk)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b := files[name]
		if len(b) > 0 {
			for i := range *damagePerFile {
				at := r.IntN(len(b))
				if i == 0 {
					at = 0
				} else if i == 1 {
					at = len(b) - 1
				}
				flipped := slices.Clone(b)
				flipped[at] ^= 1 << r.IntN(8)
				try(fmt.Sprintf("a flip at byte %d of %d", at, len(b)), name, flipped, false)
			}
			for _, n := range []int{0, 1, len(b) / 2, len(b) - 1} {
				try("a cut", name, b[:n], false)
			}
		}
		try("the loss", name, nil, true)
	}
	t.Log(outcomes)
}

// TestLockedFolder checks that a folder cannot be opened twice: a second engine would overwrite the first one's data.
func TestLockedFolder(t *testing.T) {
	dir := t.TempDir()
	eng, err := engine.Open(engine.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if second, err := engine.Open(engine.Options{Dir: dir}); !errors.Is(err, engine.ErrLocked) {
		t.Errorf("second Open: got %v, %v, want ErrLocked", second, err)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	if eng, err = engine.Open(engine.Options{Dir: dir}); err != nil {
		t.Fatalf("Open after Close: got %v, want nil", err)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
}
