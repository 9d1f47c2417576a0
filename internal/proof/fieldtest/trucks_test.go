package fieldtest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

var trucks = flag.String("trucks", "", "a gzipped file in line protocol to load instead of a small one made up here")

// series holds records of any measurement. One key field holds the measurement with its tags, so no line is left out.
var series = tsdb.MustDefine("series", tsdb.Key("series"), codec.Records(), tsdb.SchemaOptions{})

// TestTrucks loads a file into a folder and reads all of it back, before and after the folder is closed and reopened.
func TestTrucks(t *testing.T) {
	points := parse(t, input(t))
	want := map[tsdb.Entity]map[int64]codec.Record{}
	for _, p := range points {
		if want[p.Entity] == nil {
			want[p.Entity] = map[int64]codec.Record{}
		}
		want[p.Entity][p.Time.UnixNano()] = p.Value
	}
	dir := t.TempDir()
	begin := time.Now()
	with(t, dir, func(repo *tsdb.Repository[codec.Record]) {
		for i := 0; i < len(points); i += 1000 {
			if _, err := repo.PutMany(t.Context(), points[i:min(i+1000, len(points))]); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("loaded %d points of %d series in %v, synced each 1,000", len(points), len(want), time.Since(begin).Round(time.Millisecond))
		readBack(t, repo, want)
	})
	with(t, dir, func(repo *tsdb.Repository[codec.Record]) { readBack(t, repo, want) })
}

func with(t *testing.T, dir string, use func(*tsdb.Repository[codec.Record])) {
	t.Helper()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(t.Context(), series); err != nil {
		t.Fatal(err)
	}
	use(series.For(store, tenant.MustParse("fleet")))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func readBack(t *testing.T, repo *tsdb.Repository[codec.Record], want map[tsdb.Entity]map[int64]codec.Record) {
	t.Helper()
	begin, total := time.Now(), 0
	for e, records := range want {
		n := 0
		for p, err := range repo.Range(context.Background(), e, tsdb.AllTime(), tsdb.OldestFirst) {
			if err != nil {
				t.Fatal(err)
			}
			if rec, ok := records[p.Time.UnixNano()]; !ok || !rec.Equal(p.Value) {
				t.Fatalf("%v at %v: got %v, want %v", e, p.Time, p.Value, rec)
			}
			n++
		}
		if n != len(records) {
			t.Fatalf("%v: got %d points, want %d", e, n, len(records))
		}
		total += n
	}
	t.Logf("read back %d points in %v", total, time.Since(begin).Round(time.Millisecond))
}

// input returns the file of the flag, or ten minutes of ten trucks.
func input(t *testing.T) io.Reader {
	t.Helper()
	if *trucks == "" {
		var b bytes.Buffer
		for i := range 60 {
			for truck := range 10 {
				fmt.Fprintf(&b, "readings,name=truck_%d,fleet=West latitude=%d.5,velocity=%d %d\n", truck, truck, i, 1767225600000000000+int64(i)*1e10)
				fmt.Fprintf(&b, "diagnostics,name=truck_%d,fleet=West fuel_state=0.%d,status=%di %d\n", truck, i, truck, 1767225600000000000+int64(i)*1e10)
			}
		}
		return &b
	}
	f, err := os.Open(*trucks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// parse reads lines of numbers, integers and texts. The data has no other types.
func parse(t *testing.T, r io.Reader) (points []tsdb.Point[codec.Record]) {
	t.Helper()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		parts := strings.Split(lines.Text(), " ")
		if len(parts) != 3 {
			t.Fatalf("line %d: %q", len(points)+1, lines.Text())
		}
		nanos, err := strconv.ParseInt(parts[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		var fields []codec.Field
		for field := range strings.SplitSeq(parts[1], ",") {
			name, text, _ := strings.Cut(field, "=")
			value, err := number(text)
			if err != nil {
				t.Fatal(err)
			}
			fields = append(fields, codec.Field{Name: name, Value: value})
		}
		points = append(points, tsdb.Point[codec.Record]{Entity: tsdb.NewEntity(parts[0]), Time: time.Unix(0, nanos).UTC(), Value: codec.NewRecord(fields...)})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return points
}

func number(text string) (codec.Value, error) {
	if digits, ok := strings.CutSuffix(text, "i"); ok {
		n, err := strconv.ParseInt(digits, 10, 64)
		return codec.Int(n), err
	}
	if digits, ok := strings.CutSuffix(text, "u"); ok {
		n, err := strconv.ParseUint(digits, 10, 64)
		return codec.Uint(n), err
	}
	if strings.HasPrefix(text, `"`) {
		return codec.Str(strings.Trim(text, `"`)), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	return codec.Float(f), err
}
