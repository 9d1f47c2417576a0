package heatview

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/heat"
)

// recorder makes recordings for tests: of rows at the current time, in columns of one width.
type recorder struct {
	heat.Recording
	rnd *rand.Rand
}

func newTestRecorder(width time.Duration) *recorder {
	return &recorder{heat.Recording{Columns: heat.Columns{Width: width}, First: time.Now().UTC()}, rand.New(rand.NewPCG(1, 2))}
}

// add counts a row of a request that began some time after the recorder.
func (r *recorder) add(k heat.Kind, began, took time.Duration, key []byte, bytes int) {
	r.Columns.Find(r.Columns.ID(r.First.Add(began))).Cells[k].Add(key, bytes, uint32(took.Microseconds()), r.rnd)
}

// note counts a row now.
func (r *recorder) note(k heat.Kind, key string, bytes int) {
	r.add(k, time.Since(r.First), time.Millisecond, []byte(key), bytes)
}

// recording returns a copy of what was recorded until now.
func (r *recorder) recording() *heat.Recording {
	return &heat.Recording{Columns: r.Columns.Clone(), First: r.First, Last: time.Now().UTC()}
}

// recorded returns a recording of some columns, of rows of several tenants and of other programs.
func recorded(seed uint64, rows int) *heat.Recording {
	r := newTestRecorder(max(10, time.Duration(rows)/64) * time.Millisecond)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for i := range rows {
		r.add(heat.Kind(rnd.IntN(3)), time.Duration(i)*time.Millisecond, time.Duration(rnd.IntN(5000))*time.Microsecond, []byte([]string{
			fmt.Sprintf("%s#readings#site-%d#device-%03d#7443056836731319018", []string{"acme", "umbrella"}[rnd.IntN(2)], rnd.IntN(3), rnd.IntN(100)),
			"acme#readings!head#site-1#device-2#", "acme#events#a%20b#7443056836731319018#id-7", "!tenant#acme", "other\xff\x00<script>",
		}[min(rnd.IntN(20), 4)]), rnd.IntN(100))
	}
	rec := r.recording()
	rec.Last = rec.First.Add(time.Duration(rows) * time.Millisecond)
	return rec
}

func fileOf(t testing.TB, r *heat.Recording) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := r.Write(&file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestLoad: files that are not there or not recordings are errors with their names.
func TestLoad(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Load("page.html"); !errors.Is(err, heat.ErrDamaged) || !strings.Contains(err.Error(), "page.html") {
		t.Errorf("another file: %v", err)
	}
}

// TestManyGroups: what findings hold in memory follows from the samples, however many tenants they are of.
func TestManyGroups(t *testing.T) {
	r := newTestRecorder(time.Millisecond)
	for i := range 20_000 {
		r.add(writes, time.Duration(i)*3*time.Microsecond, 0, fmt.Appendf(nil, "tenant-%05d#readings#a#7443056836731319018", i), 1)
	}
	parts := 0
	for _, g := range loadOf(r.recording()).groups {
		parts += cap(g.columns)
	}
	if n := len(samplesOf(r.recording(), writes)); parts > 2*n || n < 10_000 {
		t.Errorf("%d samples take %d parts of columns", n, parts)
	}
}

// TestReadable: what keys hold reaches neither a page nor the findings as it is.
func TestReadable(t *testing.T) {
	r := newTestRecorder(time.Millisecond)
	for i := range 2000 {
		r.add(writes, time.Duration(i)*10*time.Microsecond, 0, []byte("1\x1b]0;\u009b2J\u202e\xff</script>"), 20<<20)
	}
	rec := r.recording()
	rec.Last = rec.First.Add(20 * time.Millisecond)
	var out bytes.Buffer
	if err := WriteHTML(&out, rec); err != nil {
		t.Fatal(err)
	}
	found := Findings(rec)
	for _, f := range found {
		out.WriteString(f.Reason + f.Remedy)
	}
	if bad := out.String(); len(found) < 2 || strings.ContainsAny(bad, "\x1b\u009b\u202e") || strings.Contains(bad, "\xff") {
		t.Errorf("%d findings; the page and the reasons have raw parts of keys", len(found))
	}
}

// signed returns a file with its checksum.
func signed(file []byte) []byte {
	return binary.LittleEndian.AppendUint32(bytes.Clone(file), crc32.Checksum(file, crc32.MakeTable(crc32.Castagnoli)))
}

// FuzzRead: no file makes Read panic, and what it accepts can be used, and written and read again.
func FuzzRead(f *testing.F) {
	f.Add(fileOf(f, recorded(5, 40)))
	f.Add(fileOf(f, &heat.Recording{}))
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := heat.Read(bytes.NewReader(file))
		if err != nil {
			// The checksum refuses most changes. With the right one, the rest of the checks has to do it.
			if len(file) < 4 {
				return
			}
			if r, err = heat.Read(bytes.NewReader(signed(file[:len(file)-4]))); err != nil {
				return
			}
		}
		again, err := heat.Read(bytes.NewReader(fileOf(t, r)))
		if err != nil || again.Totals() != r.Totals() {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		Findings(r)
		if err := WriteHTML(&bytes.Buffer{}, r); err != nil {
			t.Fatal(err)
		}
		if _, err := Merge(r, again); err != nil && !r.Ranked {
			t.Fatal(err)
		}
	})
}
