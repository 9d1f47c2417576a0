package past_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

// version is a commit in testdata: its rollup of events by stream, and the datasets that it has beside the common ones.
type version struct {
	commit string
	stream *rollup.Rollup[trip]
	more   []tsdb.Dataset
}

var versions = []version{
	{"2c4f707e", formerStream, nil},
	{"a2a6aaf5", byStream, []tsdb.Dataset{events}},
	{"c15cff35", byStream, []tsdb.Dataset{events, meters, waits}},
}

// has reports whether the version has a dataset.
func (v version) has(d tsdb.Dataset) bool { return slices.Contains(v.more, d) }

// read is when the earlier version read its folder, on its clock.
var read = base.Add(15 * time.Minute)

var base = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

var acme, globex, initech, hooli = tenant.MustParse("acme"), tenant.MustParse("globex"), tenant.MustParse("initech"), tenant.MustParse("hooli")

func at(before time.Duration) time.Time { return base.Add(-before).Add(123456789) }

// TestCells: the engine shows each cell that the earlier version's engine showed.
func TestCells(t *testing.T) {
	for _, v := range versions {
		t.Run(v.commit, func(t *testing.T) {
			dir := unpack(t, v.commit)
			want := readFile(t, filepath.Join(dir, "cells.txt"))
			if got := cells(t, filepath.Join(dir, "folder")); got != want {
				t.Errorf("the folder has other cells:\n%s", firstDifference(got, want))
			}
		})
	}
}

// TestFolder: a store opens the folder, reads what the earlier version read, can be written to, and keeps what it does
// not know of the catalogue when it changes it.
func TestFolder(t *testing.T) {
	for _, v := range versions {
		t.Run(v.commit, func(t *testing.T) {
			dir := unpack(t, v.commit)
			folder, want := filepath.Join(dir, "folder"), readFile(t, filepath.Join(dir, "answers.txt"))
			before := catalogue(cells(t, folder))
			for range 2 {
				store := open(t, folder)
				ensure(t, store, v, weather)
				if got := answers(t, store, v); got != want {
					t.Errorf("reads differ from those of the earlier version:\n%s", firstDifference(got, want))
				}
				closeStore(t, store)
			}
			store := open(t, folder)
			ensure(t, store, v, wider)
			repo, rome := wider.For(store, acme), tsdb.NewEntity("rome", "new")
			if err := repo.Put(t.Context(), rome, at(0), reading{TempC: 2}); err != nil {
				t.Error(err)
			}
			if p, err := repo.Latest(t.Context(), rome); err != nil || p.Value.TempC != 2 {
				t.Errorf("the new point reads as %v, %v", p, err)
			}
			if got := answers(t, store, v); !strings.Contains(got, "\npoint weather acme") {
				t.Error("no points of acme after the catalogue was changed")
			}
			closeStore(t, store)
			keepsMembers(t, before, catalogue(cells(t, folder)))
		})
	}
}

// keepsMembers compares the entries of a catalogue before and after a program added a rollup: all members stay, those
// that the program does not know too.
func keepsMembers(t *testing.T, before, after map[string]map[string]any) {
	t.Helper()
	if len(before) < 5 || len(before) != len(after) {
		t.Fatalf("the catalogue had %d datasets and has %d", len(before), len(after))
	}
	for name, members := range before {
		for member, was := range members {
			is := after[name][member]
			if name == "weather" && member == "rollups" {
				if list, _ := is.([]any); len(list) != 3 {
					t.Errorf("dataset weather has %d rollups, not the 2 of before and the new one", len(list))
				}
				continue
			}
			if fmt.Sprint(is) != fmt.Sprint(was) {
				t.Errorf("dataset %s: member %s of its entry was %v and is %v", name, member, was, is)
			}
		}
	}
}

// TestJournal: a writer delivers what an earlier one left behind, drops what was erased, and shows its dead letters.
func TestJournal(t *testing.T) {
	for _, v := range versions {
		t.Run(v.commit, func(t *testing.T) {
			ctx, dir := t.Context(), unpack(t, v.commit)
			store := open(t, filepath.Join(dir, "folder"))
			defer closeStore(t, store)
			w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: filepath.Join(dir, "journal"), MaxBytes: 16 << 20}})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			if j := w.Stats().Journal; j.Points != 0 || j.DeadLetters != 2 || j.Erased != 1 {
				t.Errorf("the journal has %d points, %d dead letters, and dropped %d points; want 0, 2, 1", j.Points, j.DeadLetters, j.Erased)
			}
			var dead []string
			for l, err := range w.DeadLetters(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				dead = append(dead, fmt.Sprintf("%s %s %q %s %s", l.Tenant, l.Dataset, l.Entity.Parts(), l.Time.UTC().Format(time.RFC3339Nano), l.Payload))
			}
			want := []string{
				`acme orders ["1"] 2026-06-15T11:59:00.123456Z dead`,
				`globex orders ["1"] 2026-06-15T11:59:00.123456Z dead, too`,
			}
			if !slices.Equal(dead, want) {
				t.Errorf("the dead letters are %q, want %q", dead, want)
			}
			for _, id := range []tenant.ID{acme, globex, hooli} {
				for i := range 3 {
					p, err := weather.For(store, id).Latest(ctx, tsdb.NewEntity("rome", fmt.Sprint("d", i)))
					if erased := id == acme && i == 2; erased {
						if !errors.Is(err, tsdb.ErrNotFound) {
							t.Errorf("the erased entity rome/d2 reads as %v, %v", p, err)
						}
					} else if err != nil || p.Value.TempC != float64(i) {
						t.Errorf("rome/d%d of %s reads as %v, %v", i, id, p, err)
					}
				}
				if p, err := state.For(store, id).Latest(ctx, tsdb.NewEntity("late")); err != nil || p.Value.TempC != 3 {
					t.Errorf("late of %s reads as %v, %v", id, p, err)
				}
			}
			total, err := rollup.For(v.stream, tripsWith(v.stream).For(store, acme)).Total(ctx, tsdb.NewEntity("t1"), tsdb.AllTime())
			if err != nil || total.Points != 2 || total.Values[0].Sum != 3+4 {
				t.Errorf("the events by stream are %+v, %v; want 2 with the sum 7", total, err)
			}
			if n, err := w.DropDeadLetters(ctx, 1, 2, 3, 4); err != nil || n == 0 {
				t.Errorf("DropDeadLetters = %d, %v", n, err)
			}
			if err := w.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestExports: an import into an empty store brings each point that the earlier version read.
func TestExports(t *testing.T) {
	for _, v := range versions {
		t.Run(v.commit, func(t *testing.T) {
			dir := unpack(t, v.commit)
			store := open(t, "")
			defer closeStore(t, store)
			for _, id := range []tenant.ID{acme, globex, hooli} {
				file, err := os.Open(filepath.Join(dir, id.String()+".export"))
				if err != nil {
					t.Fatal(err)
				}
				in, err := transfer.Import(t.Context(), store, id, file, transfer.ImportOptions{Create: true})
				if err := errors.Join(err, file.Close()); err != nil || !in.Complete || in.Points == 0 || in.Stored != in.Points {
					t.Errorf("the import of %s ended with %+v, %v", id, in, err)
				}
			}
			got, want := points(answers(t, store, v)), points(readFile(t, filepath.Join(dir, "answers.txt")))
			if got != want {
				t.Errorf("the imported points differ:\n%s", firstDifference(got, want))
			}
		})
	}
}

// points returns the lines of answers that show points.
func points(answers string) string {
	return strings.Join(slices.DeleteFunc(strings.SplitAfter(answers, "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "point ") && !strings.HasPrefix(line, "latest ")
	}), "")
}

func open(t *testing.T, dir string) *tsdb.Store {
	t.Helper()
	began := time.Now()
	clock := func() time.Time { return read.Add(time.Since(began)) }
	store, err := embedded.New(t.Context(), embedded.Options{StoreOptions: tsdb.StoreOptions{Clock: clock}, Dir: dir, GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func ensure(t *testing.T, store *tsdb.Store, v version, weather tsdb.Dataset) {
	t.Helper()
	if err := store.Ensure(t.Context(), append([]tsdb.Dataset{weather, state, orders, fields, tripsWith(v.stream)}, v.more...)...); err != nil {
		t.Fatalf("the schemas no longer fit the folder: %v", err)
	}
}

func closeStore(t *testing.T, store *tsdb.Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// unpack returns a folder with the archive of a commit.
func unpack(t *testing.T, commit string) string {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Open(filepath.Join("testdata", commit+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(plain); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(name, 0o700)
		} else if data, readErr := io.ReadAll(archive); readErr == nil {
			err = os.WriteFile(name, data, 0o600)
		} else {
			err = readErr
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cells returns all cells of a folder, as testdata/writer.txt writes them.
func cells(t *testing.T, folder string) string {
	t.Helper()
	server, err := local.Open(engine.Options{Dir: folder, GCInterval: -1, Clock: func() time.Time { return read }})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := server.Dial()
	if err != nil {
		t.Fatal(err)
	}
	client, _, err := local.Clients(context.Background(), conn)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = client.Open("tidemark").ReadRows(t.Context(), bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
		var lines []string
		for _, items := range row {
			for _, c := range items {
				lines = append(lines, fmt.Sprintf("%q %q %d %q\n", c.Row, c.Column, c.Timestamp, c.Value))
			}
		}
		slices.Sort(lines)
		out.WriteString(strings.Join(lines, ""))
		return true
	})
	if err := errors.Join(err, client.Close(), server.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// catalogue returns the entries of datasets among cells.
func catalogue(cells string) map[string]map[string]any {
	entries := map[string]map[string]any{}
	for line := range strings.Lines(cells) {
		var row, column, value string
		var stamp int64
		if _, err := fmt.Sscanf(line, "%q %q %d %q\n", &row, &column, &stamp, &value); err != nil || column != "_sys:json" {
			continue
		}
		if name, ok := strings.CutPrefix(row, "!dataset#"); ok {
			members := map[string]any{}
			if err := json.NewDecoder(bytes.NewBufferString(value)).Decode(&members); err == nil {
				entries[name] = maps.Clone(members)
			}
		}
	}
	return entries
}

// firstDifference returns the first lines that differ.
func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d of %d and %d:\n got %q\nwant %q", i+1, len(a), len(b), slices.Concat(a[min(i, len(a)):], []string{""})[0], slices.Concat(b[min(i, len(b)):], []string{""})[0])
		}
	}
	return ""
}
