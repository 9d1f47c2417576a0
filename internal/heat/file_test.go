package heat

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// recorder makes recordings for tests: of rows at the current time, in columns of one width.
type recorder struct {
	Recording
	rnd *rand.Rand
}

func newTestRecorder(width time.Duration) *recorder {
	return &recorder{Recording{Columns: Columns{Width: width}, First: time.Now().UTC()}, rand.New(rand.NewPCG(1, 2))}
}

// add counts a row of a request that began some time after the recorder.
func (r *recorder) add(k Kind, began, took time.Duration, key []byte, bytes int) {
	r.Columns.Find(r.Columns.ID(r.First.Add(began))).Cells[k].Add(key, bytes, uint32(took.Microseconds()), r.rnd)
}

// note counts a row now.
func (r *recorder) note(k Kind, key string, bytes int) {
	r.add(k, time.Since(r.First), time.Millisecond, []byte(key), bytes)
}

// recording returns a copy of what was recorded until now.
func (r *recorder) recording() *Recording {
	return &Recording{Columns: r.Columns.Clone(), First: r.First, Last: time.Now().UTC()}
}

// recorded returns a recording of some columns, of rows of several tenants and of other programs.
func recorded(seed uint64, rows int) *Recording {
	r := newTestRecorder(max(10, time.Duration(rows)/64) * time.Millisecond)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for i := range rows {
		r.add(Kind(rnd.IntN(3)), time.Duration(i)*time.Millisecond, time.Duration(rnd.IntN(5000))*time.Microsecond, []byte([]string{
			fmt.Sprintf("%s#readings#site-%d#device-%03d#7443056836731319018", []string{"acme", "umbrella"}[rnd.IntN(2)], rnd.IntN(3), rnd.IntN(100)),
			"acme#readings!head#site-1#device-2#", "acme#events#a%20b#7443056836731319018#id-7", "!tenant#acme", "other\xff\x00<script>",
		}[min(rnd.IntN(20), 4)]), rnd.IntN(100))
	}
	rec := r.recording()
	rec.Last = rec.First.Add(time.Duration(rows) * time.Millisecond)
	return rec
}

func fileOf(t testing.TB, r *Recording) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := r.Write(&file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestFileRoundTrip: what is read is what was written, byte for byte.
func TestFileRoundTrip(t *testing.T) {
	ranked := recorded(2, 500)
	ranked.Ranked = true
	for name, r := range map[string]*Recording{"full": recorded(1, 3000), "empty": {}, "nil": nil, "ranked": ranked} {
		file := fileOf(t, r)
		got, err := Read(bytes.NewReader(file))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again := fileOf(t, got); !bytes.Equal(again, file) || got.Totals() != r.Totals() || name == "ranked" && !got.Ranked {
			t.Errorf("%s: the recording changes when it is read", name)
		}
	}
}

// TestStoredFormat: files of this version stay readable.
func TestStoredFormat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRecorder(time.Second)
		r.note(Writes, "acme#readings#device-1#7443056836731319018", 14)
		time.Sleep(1500 * time.Millisecond)
		r.note(Reads, "b", 300)
		r.note(Failures, "", 0)
		const want = "544944454845415401008094ebdc03808098a4eab3a6a31a80bcd9baf5b3a6a31a02" + // to the number of columns
			"808eea860700010ee807002a61636d652372656164696e6773236465766963652d3123373434333035363833363733313331393031380ee80701" +
			"2a61636d652372656164696e6773236465766963652d3123373434333035363833363733313331393031380ee80700" +
			"828eea860701ac02e807000162ac02e807010162ac02e8070001" + "00e80700000000010000e807" + "19f9fcc4"
		if got := hex.EncodeToString(fileOf(t, r.recording())); got != want {
			t.Errorf("a recording is written as\n%s\nwant\n%s", got, want)
		}
		raw, err := hex.DecodeString(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read(bytes.NewReader(raw))
		if err != nil || got.Totals() != (Totals{Reads: 1, Writes: 1, Failures: 1, Bytes: 314}) {
			t.Errorf("read: %v %+v", err, got.Totals())
		}
	})
}

// TestDamagedFiles: no byte can change, and nothing can be missing or follow, without a clear error.
func TestDamagedFiles(t *testing.T) {
	file := fileOf(t, recorded(3, 60))
	for i := range file {
		for _, bit := range []byte{1, 0x80} {
			damaged := bytes.Clone(file)
			damaged[i] ^= bit
			if _, err := Read(bytes.NewReader(damaged)); !errors.Is(err, ErrDamaged) && !(i == len(magic) && errors.Is(err, ErrVersion)) {
				t.Fatalf("byte %d of %d changed: %v", i, len(file), err)
			}
		}
		if _, err := Read(bytes.NewReader(file[:i])); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut after %d bytes: %v", i, err)
		}
	}
	if _, err := Read(bytes.NewReader(append(bytes.Clone(file), 0))); !errors.Is(err, ErrDamaged) {
		t.Errorf("a byte follows: %v", err)
	}
	if _, err := Read(nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("no reader: %v", err)
	}
	newer := bytes.Clone(file)
	newer[len(magic)] = 2
	if _, err := Read(bytes.NewReader(newer)); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "2") {
		t.Errorf("a newer version: %v", err)
	}
}

// TestSaveIsPrivate: only the owner may read a file with keys, also where another file was replaced, and a folder that
// is missing is an error.
func TestSaveIsPrivate(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "r.heat")
	if err := os.WriteFile(name, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := recorded(4, 10).Save(name); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v (%v), want 0600", info.Mode(), err)
	}
	if err := recorded(4, 10).Save(filepath.Join(dir, "missing", "r.heat")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into a folder that is missing: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("files are left: %v", left)
	}
}
