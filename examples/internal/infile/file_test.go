package infile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// packed returns a text as it is, with gzip, and with zstd.
func packed(t testing.TB, text string) map[string]string {
	t.Helper()
	var g, z bytes.Buffer
	gw := gzip.NewWriter(&g)
	_, err := io.WriteString(gw, text)
	zw, zerr := zstd.NewWriter(&z)
	_, werr := io.WriteString(zw, text)
	if err := errors.Join(err, gw.Close(), zerr, werr, zw.Close()); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"": text, ".gz": g.String(), ".zst": z.String()}
}

// TestSeek: from the position of any record the same records follow as in one run, however the file is packed.
func TestSeek(t *testing.T) {
	var csv, json, lines strings.Builder
	csv.WriteString("\ufeffa,b\n")
	for i := range 3000 {
		fmt.Fprintf(&csv, "%d,\"x\ny\"\n", i)
		fmt.Fprintf(&json, "{\"a\":%d}\n\n", i)
		fmt.Fprintf(&lines, "# c\na,t=x b=\"%d\n\" 1\n", i)
	}
	for name, file := range map[string]struct {
		text string
		open func(*File) (Reader, error)
	}{
		"a.csv":    {csv.String(), func(f *File) (Reader, error) { return NewCSV(f, CSVOptions{}) }},
		"a.ndjson": {json.String(), func(f *File) (Reader, error) { return NewNDJSON(f) }},
		"a.lp":     {lines.String(), func(f *File) (Reader, error) { return NewLineProtocol(f) }},
	} {
		for ending, text := range packed(t, file.text) {
			path := filepath.Join(t.TempDir(), name+ending)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			open := func() Reader {
				f, err := Open(path, nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = f.Close() })
				r, err := file.open(f)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			whole := rest(t, open())
			if len(whole) != 3000 {
				t.Fatalf("%s%s: %d records, want 3000", name, ending, len(whole))
			}
			for _, n := range []int{1, 1499, 2999, 3000} {
				r := open()
				for range n {
					if _, err := r.Next(); err != nil {
						t.Fatal(err)
					}
				}
				again := open()
				if err := again.Seek(r.Position()); err != nil {
					t.Fatal(err)
				}
				if got := rest(t, again); !slices.Equal(got, whole[n:]) {
					t.Errorf("%s%s: from %v come %d records, want %d", name, ending, r.Position(), len(got), 3000-n)
				}
			}
			if err := open().Seek(Position{Offset: int64(len(file.text)) + 1}); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s%s: continued behind its end: %v", name, ending, err)
			}
			guessed, err := Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer guessed.Close()
			for _, name := range []string{guessed.Name, "-"} {
				guessed.Name = name
				if got, err := guessed.Guess(); err != nil || !strings.Contains("a.csv a.ndjson a.line", "."+string(got)) {
					t.Errorf("%s: the format is %q, %v", path, got, err)
				}
			}
		}
	}
}

func TestGuess(t *testing.T) {
	for text, want := range map[string]Format{
		"a,b\n1,2": FormatCSV, "a;b": FormatCSV, "\ufeffa\tb\n": FormatCSV, `{"a":1}`: FormatNDJSON, "\n [1]": FormatNDJSON,
		"cpu,host=a x=1 123\n": FormatLine, "cpu x=\"a b\"": FormatLine, "PAR1xxxx": FormatParquet, "": "", "abc\n": "", "# a b=1 2\nx": "",
	} {
		f, err := Open("-", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Guess(); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for name, want := range map[string]string{"x/y.csv.gz": "x/y", "y.json": "y", "y.v1.csv": "y.v1", "y.txt": "y.txt", "-": "-", "y.PQ": "y"} {
		if got, _ := Stem(name); got != want {
			t.Errorf("%s: the stem is %q, want %q", name, got, want)
		}
	}
}

// TestDamagedPacks: what is cut off or changed is an error, never the end of the file.
func TestDamagedPacks(t *testing.T) {
	text := "a,b\n" + strings.Repeat("12,34\n", 100_000)
	for ending, pack := range packed(t, text) {
		if ending == "" {
			continue
		}
		f, err := Open("-", strings.NewReader(pack[:len(pack)-1]))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, f); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s, cut off: %v", ending, err)
		}
		_ = f.Close()
		if _, err := Open("-", strings.NewReader(pack[:3])); ending == ".gz" && !errors.Is(err, ErrDamaged) {
			t.Errorf("%s, three bytes: %v", ending, err)
		}
	}
	if _, err := Open(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("a folder: %v", err)
	}
}

func TestNDJSON(t *testing.T) {
	long := strings.Repeat(" ", MaxRecord)
	n, err := NewNDJSON(opened(t, "a", "\ufeff{\"a\":1}\r\n \n{}"+long+"\n{\"b\":2}"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`line 1 {"a":1}`, "line 3: " + errLong.Error(), `line 4 {"b":2}`}
	if got := rest(t, n); !slices.Equal(got, want) {
		t.Errorf("%.200q, want %q", got, want)
	}
}
