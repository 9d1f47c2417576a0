package infile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
)

// written returns the bytes of a Parquet file with rows in groups of 100.
func written[T any](t testing.TB, rows []T, options ...parquet.WriterOption) []byte {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[T](&out, options...)
	for part := range slices.Chunk(rows, 100) {
		_, err := w.Write(part)
		if err := errors.Join(err, w.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func parquetOf(t testing.TB, data []byte, rename map[string]string) (*Parquet, error) {
	t.Helper()
	p, err := NewParquet(opened(t, "a.parquet", string(data)), rename)
	if err == nil {
		t.Cleanup(func() { _ = p.Close() })
	}
	return p, err
}

type typesRow struct {
	B     bool             `parquet:"b"`
	I     int32            `parquet:"i"`
	L     int64            `parquet:"l,optional"`
	U     uint64           `parquet:"u"`
	F     float32          `parquet:"f"`
	D     float64          `parquet:"d"`
	S     string           `parquet:"s"`
	E     string           `parquet:"e,enum"`
	Raw   []byte           `parquet:"raw"`
	Ms    int64            `parquet:"ms,timestamp(millisecond)"`
	Us    int64            `parquet:"us,timestamp(microsecond)"`
	Ns    int64            `parquet:"ns,timestamp(nanosecond)"`
	Day   int32            `parquet:"day,date"`
	Price int64            `parquet:"price,decimal(2:10)"`
	Small int32            `parquet:"small,decimal(5:9)"`
	Old   deprecated.Int96 `parquet:"old"`
	Gps   struct {
		Lat float64 `parquet:"lat"`
	} `parquet:"gps"`
	List  []int32  `parquet:"list,list"`
	Tags  []string `parquet:"tags"`
	Local int64    `parquet:"local,timestamp(microsecond:local)"`
}

func TestParquetTypes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_007_008, time.UTC)
	row := typesRow{
		B: true, I: -3, L: math.MinInt64, U: math.MaxUint64, F: 0.1, D: 1.5, S: "x", E: "on", Raw: []byte("raw"), Ms: at.UnixMilli(), Us: at.UnixMicro(), Ns: at.UnixNano(),
		Day: 20455, Price: -1234, Small: 7, Old: deprecated.Int96{0, 0, 2440588 + 1}, List: []int32{1, 2}, Tags: []string{"a"}, Local: at.UnixMicro(),
	}
	row.Gps.Lat = 52.5
	empty := typesRow{D: math.NaN(), Raw: []byte{0xff}}
	data := written(t, []typesRow{row, empty})
	p, err := parquetOf(t, data, map[string]string{"ms": "ts"})
	if err != nil {
		t.Fatal(err)
	}
	got := rest(t, p)
	want := `line 1 {"b":true,"d":1.5,"day":"2026-01-02","e":"on","f":0.1,"gps.lat":52.5,"i":-3,"l":-9223372036854775808,"list":[1,2],"local":"2026-01-02T03:04:05.006007",` +
		`"ns":"2026-01-02T03:04:05.006007008Z","old":"1970-01-02T00:00:00Z","price":-12.34,"raw":"raw","s":"x","small":0.00007,"tags":["a"],"ts":"2026-01-02T03:04:05.006Z",` +
		`"u":18446744073709551615,"us":"2026-01-02T03:04:05.006007Z"}`
	if len(got) != 2 || got[0] != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if len(got) == 2 && (strings.Contains(got[1], `"d"`) || strings.Contains(got[1], `"l"`) || strings.Contains(got[1], `"list"`)) {
		t.Errorf("the empty row is %s, want no d, l and list", got[1])
	}
	for text, names := range map[string]map[string]string{"has not": {"none": "x"}, "two columns": {"ms": "us"}} {
		if _, err := parquetOf(t, data, names); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v", names, err)
		}
	}
}

// TestParquetLeftOut: columns that have no form here are named, and the others are read.
func TestParquetLeftOut(t *testing.T) {
	type row struct {
		X      int64     `parquet:"x"`
		Nested [][]int64 `parquet:"nested,list"`
		Fixed  [3]byte   `parquet:"fixed"`
	}
	p, err := parquetOf(t, written(t, []row{{X: 1, Nested: [][]int64{{1}}}}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := rest(t, p); len(got) != 1 || got[0] != `line 1 {"x":1}` || len(p.LeftOut()) != 2 {
		t.Errorf("%q, without %q", got, p.LeftOut())
	}
}

type simpleRow struct {
	N int64  `parquet:"n"`
	S string `parquet:"s,dict"`
}

func simpleRows(n int) []simpleRow {
	rows := make([]simpleRow, n)
	for i := range rows {
		rows[i] = simpleRow{int64(i), fmt.Sprint(i % 7)}
	}
	return rows
}

func TestParquetSeek(t *testing.T) {
	data := written(t, simpleRows(250), parquet.Compression(&parquet.Zstd))
	whole, err := parquetOf(t, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := rest(t, whole)
	for _, n := range []int64{0, 1, 99, 100, 101, 200, 249, 250} {
		p, err := parquetOf(t, data, nil)
		if err == nil {
			err = p.Seek(Position{Offset: n, Line: n})
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := rest(t, p); !slices.Equal(got, all[n:]) {
			t.Errorf("from row %d come %d rows, want %d", n, len(got), len(all)-int(n))
		}
	}
	p, err := parquetOf(t, data, nil)
	if err == nil {
		err = p.Seek(Position{Offset: 251})
	}
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("continued behind the end: %v", err)
	}
}

func TestParquetNeedsAFile(t *testing.T) {
	data := written(t, simpleRows(1))
	for ending, text := range packed(t, string(data)) {
		path := filepath.Join(t.TempDir(), "a"+ending)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if format, err := f.Guess(); format != FormatParquet || err != nil {
			t.Errorf("%s: %s, %v", ending, format, err)
		}
		if _, err := NewParquet(f, nil); (err == nil) != (ending == "") {
			t.Errorf("%s: %v", ending, err)
		}
	}
	f, err := Open("-", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewParquet(f, nil); err == nil {
		t.Error("Parquet from standard input is read")
	}
}

// readAll reads hostile bytes to their end or an error. It writes them to a file of that name.
func readAll(t testing.TB, path string, data []byte) (rows int, err error) {
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, nil)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	p, err := NewParquet(f, nil)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	for {
		if _, err := p.Next(); err == io.EOF {
			return rows, nil
		} else if err != nil {
			return rows, err
		}
		if rows++; rows > 1<<20 {
			return rows, errors.New("too many rows")
		}
	}
}

// TestHostileParquet: a file of which any byte is changed or missing neither ends the program nor takes much memory.
func TestHostileParquet(t *testing.T) {
	data, path := written(t, simpleRows(150)), filepath.Join(t.TempDir(), "a")
	most := uint64(0)
	for i := range data {
		changed := slices.Clone(data)
		changed[i] = []byte{0x00, 0xff, 0x7f, data[i] ^ 0x10}[i%4]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = readAll(t, path, changed)
		runtime.ReadMemStats(&after)
		most = max(most, after.TotalAlloc-before.TotalAlloc)
		if i%7 == 0 {
			if _, err := readAll(t, path, data[:i]); err == nil {
				t.Fatalf("the first %d bytes are a whole file", i)
			}
		}
	}
	if most > 64<<20 {
		t.Errorf("%d bytes of memory for a file of %d bytes", most, len(data))
	}
	long := []byte{0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07} // a list of many structures
	if err := (&thriftWalk{data: long}).structure(0); !errors.Is(err, errThriftCut) {
		t.Errorf("a list that is longer than its bytes: %v", err)
	}
	if err := (&thriftWalk{data: bytes.Repeat([]byte{0x1c}, 100)}).structure(0); !errors.Is(err, errThriftBad) {
		t.Errorf("deep structures: %v", err)
	}
}

func FuzzParquet(f *testing.F) {
	f.Add(written(f, simpleRows(5)))
	f.Add(written(f, simpleRows(150), parquet.Compression(&parquet.Snappy)))
	f.Add(written(f, []typesRow{{S: "x", List: []int32{1}}}))
	path := filepath.Join(f.TempDir(), "a")
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 1<<16 {
			_, _ = readAll(t, path+fmt.Sprint(os.Getpid()), data)
		}
	})
}
