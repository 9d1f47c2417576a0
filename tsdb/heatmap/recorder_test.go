package heatmap

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

var long = flag.Bool("heatmap.long", false, "record 10 million distinct keys")

func newTestRecorder(t testing.TB, o Options) *Recorder {
	t.Helper()
	r, err := NewRecorder(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// note records a row now.
func (r *Recorder) note(k heat.Kind, key string, bytes int) {
	r.add(k, r.now(), time.Millisecond, []byte(key), bytes)
}

func samplesOf(r *heat.Recording, k heat.Kind) (keys []string) {
	for _, col := range r.List() {
		c := &col.Cells[k]
		for i := range c.Samples {
			keys = append(keys, string(c.At(i).Key))
		}
	}
	return keys
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{Keep: -1}, {Keep: 400 * 24 * time.Hour}, {Column: -1}, {Column: time.Microsecond}, {Column: 48 * time.Hour}} {
		if _, err := NewRecorder(o); !errors.Is(err, invalid.ErrInput) {
			t.Errorf("%+v: %v, want ErrInvalid", o, err)
		}
	}
}

// TestSamples: a cell keeps a bounded number of samples, and each row has the same chance, from any writer at any time.
// Rows that come in turns are no exception: with equal gaps, every sample could be of one of the 64.
func TestSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRecorder(t, Options{})
		const rows = 1 << 17
		for i := range rows {
			r.note(heat.Writes, fmt.Sprintf("%02d#%06d", i%64, i), 10)
		}
		rec := r.Recording().data()
		keys := samplesOf(rec, heat.Writes)
		if len(keys) > heat.MaxSamples || len(keys) < heat.MaxSamples/3 {
			t.Fatalf("%d samples, want up to %d", len(keys), heat.MaxSamples)
		}
		turns, halves := map[string]int{}, 0
		for _, key := range keys {
			turns[key[:2]]++
			if key[3:] < "065536" {
				halves++
			}
		}
		n := float64(len(keys))
		if got := math.Abs(float64(halves) - n/2); got > 5*math.Sqrt(n)/2 {
			t.Errorf("%d of %.0f samples are of the first half of the rows", halves, n)
		}
		for turn, got := range turns {
			if float64(got) > n/64+6*math.Sqrt(n/64) {
				t.Errorf("%d of %.0f samples are of %s, which has 1 of 64 rows", got, n, turn)
			}
		}
		if total := rec.Totals(); total.Writes != rows || total.Bytes != 10*rows {
			t.Errorf("the totals are %+v, want them exact", total)
		}
	})
}

// TestColumns: columns become wider until they reach back as far as asked, and then the oldest are dropped. Rows of
// slow requests count when these began.
func TestColumns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRecorder(t, Options{Keep: 10 * time.Minute})
		began := time.Now()
		for i := range 3600 {
			r.note(heat.Writes, fmt.Sprintf("%04d", i), 1)
			time.Sleep(time.Second)
		}
		rec := r.Recording().data()
		if got := rec.Columns.Width; got != 16*time.Second {
			t.Errorf("columns are %v wide, want 16s", got)
		}
		from, to := rec.First, rec.Last
		if kept := to.Sub(from); kept < 10*time.Minute || kept > 20*time.Minute || to.Sub(began) != time.Hour {
			t.Errorf("the recording reaches from %v to %v", from, to)
		}
		if n := uint64(to.Sub(from).Seconds()); rec.Totals().Writes != n || len(rec.List()) > maxColumns {
			t.Errorf("%d rows in %d columns, want %d", rec.Totals().Writes, len(rec.List()), n)
		}
		late := r.now() - 5*time.Minute
		r.add(heat.Writes, late, 5*time.Minute, []byte("late"), 1)
		id := rec.Columns.ID(r.began.Add(late))
		for _, col := range r.Recording().data().List() {
			if has := strings.Contains(string(col.Cells[heat.Writes].Keys), "late"); has != (col.ID == id) {
				t.Errorf("a row of a request that took long: in column %d, want %d", col.ID, id)
			}
		}
		r.add(heat.Writes, 0, time.Hour, []byte("later"), 1)
		for i, col := range r.Recording().data().List() {
			if has := strings.Contains(string(col.Cells[heat.Writes].Keys), "later"); has != (i == 0) {
				t.Errorf("a row of a request from before all columns: in column %d, want the oldest", i)
			}
		}
		time.Sleep(1000 * time.Hour)
		r.note(heat.Writes, "again", 1)
		if rec := r.Recording().data(); len(rec.List()) != 1 || rec.Totals().Writes != 1 {
			t.Errorf("after a long silence there are %d columns", len(rec.List()))
		}
	})
}

// TestKeep: a recording reaches back as far as asked, also where as many columns would just be as long.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keep = maxColumns * time.Second
		r := newTestRecorder(t, Options{Keep: keep})
		for range 500 {
			r.note(heat.Writes, "a", 1)
			rec := r.Recording().data()
			if from, to := rec.First, rec.Last; to.Sub(from) < min(keep, r.now()) {
				t.Fatalf("after %v the recording reaches back %v, want %v", r.now(), to.Sub(from), keep)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestWidening loses no row, and the shares of samples stay.
func TestWidening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRecorder(t, Options{Column: time.Millisecond, Keep: 24 * time.Hour})
		const rows = 60_000
		for i := range rows {
			r.note(heat.Kind(i%2), fmt.Sprintf("%05d", i), 1)
			time.Sleep(time.Millisecond)
		}
		rec := r.Recording().data()
		if total := rec.Totals(); total.Reads != rows/2 || total.Writes != rows/2 {
			t.Errorf("after columns were joined: %+v", total)
		}
		half := 0
		keys := samplesOf(rec, heat.Writes)
		for _, key := range keys {
			if key < "30000" {
				half++
			}
		}
		weights := 0.0
		for _, col := range rec.List() {
			weights += col.Cells[heat.Writes].Weight() * float64(len(col.Cells[heat.Writes].Samples))
		}
		if math.Abs(weights-rows/2) > 1 || half == 0 || half == len(keys) {
			t.Errorf("samples stand for %.0f rows, %d of %d in the first half", weights, half, len(keys))
		}
	})
}

// held is the memory of a recorder in bytes.
func (r *Recorder) held() (n int) {
	for _, col := range r.columns.List {
		for k := range col.Cells {
			c := &col.Cells[k]
			n += 200 + cap(c.Samples)*12 + cap(c.Keys) + cap(c.Largest.Key)
		}
	}
	return n
}

// TestMemory: distinct keys, even of the largest size, do not take more memory than is documented.
func TestMemory(t *testing.T) {
	testkit.Plain(t)
	rows := 100_000
	if *long {
		rows = 10_000_000
	}
	for name, size := range map[string]int{"40 bytes": 40, "4 KiB": 4096} {
		t.Run(name, func(t *testing.T) {
			most := map[int]int{40: 130 << 10, 4096: 800 << 10}[size]
			synctest.Test(t, func(t *testing.T) {
				r := newTestRecorder(t, Options{})
				pad, peak := bytes.Repeat([]byte("x"), size-12), 0
				for i := range rows {
					key := append(fmt.Appendf(nil, "%012d", i*7919%rows), pad...)
					r.add(heat.Kind(i%2), r.now(), time.Millisecond, key, 100)
					if i%(rows/1000) == 0 {
						time.Sleep(4 * time.Second)
						peak = max(peak, r.held())
					}
				}
				if got := peak / maxColumns; got > most {
					t.Errorf("%d bytes a column, want up to %d", got, most)
				}
				t.Logf("%d keys of %s: %d KiB at most, in %d columns", rows, name, peak>>10, len(r.columns.List))
			})
		})
	}
}

// TestKeysAreCopied: the memory of a request may be used again once it was recorded.
func TestKeysAreCopied(t *testing.T) {
	r := newTestRecorder(t, Options{})
	key := []byte("acme#readings#device-1#")
	for i := range 3000 {
		r.add(heat.Reads, r.now(), 0, key, i)
		copy(key, "garbage")
		copy(key, "acme#re")
	}
	copy(key, "garbage")
	for _, got := range append(samplesOf(r.Recording().data(), heat.Reads), string(r.columns.List[0].Cells[heat.Reads].Largest.Key)) {
		if !strings.HasPrefix(got, "acme#") {
			t.Fatalf("a sample has become %q", got)
		}
	}
}

func BenchmarkRecorder(b *testing.B) {
	key := []byte("acme#readings#berlin#device-0001#7443056836731319018")
	b.Run("row", func(b *testing.B) {
		var c heat.Cell
		rnd := rand.New(rand.NewPCG(1, 2))
		b.ReportAllocs()
		for b.Loop() {
			c.Add(key, 100, 10, rnd)
		}
	})
	b.Run("request", func(b *testing.B) {
		r := newTestRecorder(b, Options{})
		b.ReportAllocs()
		for b.Loop() {
			r.add(heat.Reads, r.now(), time.Millisecond, key, 100)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		r := newTestRecorder(b, Options{})
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				r.add(heat.Reads, r.now(), time.Millisecond, key, 100)
			}
		})
	})
}
