package heatmap

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// recorded returns a recording of some columns, of rows of several tenants and of other programs.
func recorded(t testing.TB, seed uint64, rows int) *Recording {
	t.Helper()
	r := newTestRecorder(t, Options{Column: 10 * time.Millisecond})
	rnd := rand.New(rand.NewPCG(seed, 1))
	for i := range rows {
		r.add(kind(rnd.IntN(3)), time.Duration(i)*time.Millisecond, time.Duration(rnd.IntN(5000))*time.Microsecond, []byte([]string{
			fmt.Sprintf("%s#readings#site-%d#device-%03d#7443056836731319018", []string{"acme", "umbrella"}[rnd.IntN(2)], rnd.IntN(3), rnd.IntN(100)),
			"acme#readings!head#site-1#device-2#", "acme#events#a%20b#7443056836731319018#id-7", "!tenant#acme", "other\xff\x00<script>",
		}[min(rnd.IntN(20), 4)]), rnd.IntN(100))
	}
	rec := r.Recording()
	rec.last = rec.first.Add(time.Duration(rows) * time.Millisecond)
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
	for name, r := range map[string]*Recording{"full": recorded(t, 1, 3000), "empty": {}, "nil": nil, "ranked": recorded(t, 2, 500).Ranked()} {
		file := fileOf(t, r)
		got, err := Read(bytes.NewReader(file))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again := fileOf(t, got); !bytes.Equal(again, file) || got.Totals() != r.Totals() || !reflect.DeepEqual(got.Findings(), r.Findings()) {
			t.Errorf("%s: the recording changes when it is read", name)
		}
	}
}

// TestStoredFormat: files of this version stay readable.
func TestStoredFormat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRecorder(t, Options{Column: time.Second})
		r.note(writes, "acme#readings#device-1#7443056836731319018", 14)
		time.Sleep(1500 * time.Millisecond)
		r.note(reads, "b", 300)
		r.note(failures, "", 0)
		const want = "544944454845415401008094ebdc03808098a4eab3a6a31a80bcd9baf5b3a6a31a02" + // to the number of columns
			"808eea860700010ee807002a61636d652372656164696e6773236465766963652d3123373434333035363833363733313331393031380ee80701" +
			"2a61636d652372656164696e6773236465766963652d3123373434333035363833363733313331393031380ee80700" +
			"828eea860701ac02e807000162ac02e807010162ac02e8070001" + "00e80700000000010000e807" + "19f9fcc4"
		if got := hex.EncodeToString(fileOf(t, r.Recording())); got != want {
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
	file := fileOf(t, recorded(t, 3, 60))
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
	if _, err := Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	newer := bytes.Clone(file)
	newer[len(magic)] = 2
	if _, err := Read(bytes.NewReader(newer)); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "2") {
		t.Errorf("a newer version: %v", err)
	}
}

// TestManyGroups: what findings hold in memory follows from the samples, however many tenants they are of.
func TestManyGroups(t *testing.T) {
	r := newTestRecorder(t, Options{Column: time.Millisecond})
	for i := range 20_000 {
		r.add(writes, time.Duration(i)*3*time.Microsecond, 0, fmt.Appendf(nil, "tenant-%05d#readings#a#7443056836731319018", i), 1)
	}
	parts := 0
	for _, g := range r.Recording().load().groups {
		parts += cap(g.columns)
	}
	if n := len(samplesOf(r.Recording(), writes)); parts > 2*n || n < 10_000 {
		t.Errorf("%d samples take %d parts of columns", n, parts)
	}
}

// TestReadable: what keys hold reaches neither a terminal nor a page as it is.
func TestReadable(t *testing.T) {
	r := newTestRecorder(t, Options{Column: time.Millisecond})
	for i := range 2000 {
		r.add(writes, time.Duration(i)*10*time.Microsecond, 0, []byte("1\x1b]0;\u009b2J\u202e\xff</script>"), 20<<20)
	}
	rec := r.Recording()
	rec.last = rec.first.Add(20 * time.Millisecond)
	var out bytes.Buffer
	for _, draw := range []func(io.Writer, PictureOptions) error{rec.WriteText, rec.WriteHTML} {
		if err := draw(&out, PictureOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	found := rec.Findings()
	for _, f := range found {
		out.WriteString(f.Reason + f.Remedy)
	}
	if bad := out.String(); len(found) < 2 || strings.ContainsAny(bad, "\x1b\u009b\u202e") || strings.Contains(bad, "\xff") {
		t.Errorf("%d findings; the text, the page and the reasons have raw parts of keys", len(found))
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
	if err := recorded(t, 4, 10).Save(name); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v (%v), want 0600", info.Mode(), err)
	}
	if err := recorded(t, 4, 10).Save(filepath.Join(dir, "missing", "r.heat")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into a folder that is missing: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("files are left: %v", left)
	}
}

// signed returns a file with its checksum.
func signed(file []byte) []byte {
	return binary.LittleEndian.AppendUint32(bytes.Clone(file), crc32.Checksum(file, castagnoli))
}

// FuzzRead: no file makes Read panic, and what it accepts can be used, and written and read again.
func FuzzRead(f *testing.F) {
	f.Add(fileOf(f, recorded(f, 5, 40)))
	f.Add(fileOf(f, &Recording{}))
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := Read(bytes.NewReader(file))
		if err != nil {
			// The checksum refuses most changes. With the right one, the rest of the checks has to do it.
			if len(file) < 4 {
				return
			}
			if r, err = Read(bytes.NewReader(signed(file[:len(file)-4]))); err != nil {
				return
			}
		}
		again, err := Read(bytes.NewReader(fileOf(t, r)))
		if err != nil || again.Totals() != r.Totals() {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		r.Findings()
		r.Ranked()
		for by := range View(3) {
			if err := r.WriteText(&bytes.Buffer{}, PictureOptions{By: by}); err != nil {
				t.Fatal(err)
			}
			if err := r.WriteHTML(&bytes.Buffer{}, PictureOptions{By: by}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Merge(r, again); err != nil && !r.ranked {
			t.Fatal(err)
		}
	})
}
