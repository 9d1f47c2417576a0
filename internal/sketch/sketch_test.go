package sketch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/sketch"
)

// shapes are ways in which the numbers of a series are distributed.
var shapes = map[string]func(r *rand.Rand, i int) float64{
	"uniform":            func(r *rand.Rand, _ int) float64 { return r.Float64() },
	"normal":             func(r *rand.Rand, _ int) float64 { return r.NormFloat64()*5 + 20 },
	"normal around zero": func(r *rand.Rand, _ int) float64 { return r.NormFloat64() },
	"negative":           func(r *rand.Rand, _ int) float64 { return -r.ExpFloat64() },
	"exponential":        func(r *rand.Rand, _ int) float64 { return r.ExpFloat64() * 30 },
	"log-normal":         func(r *rand.Rand, _ int) float64 { return math.Exp(r.NormFloat64() * 3) },
	"heavy tail":         func(r *rand.Rand, _ int) float64 { return math.Pow(1-r.Float64(), -2) },
	"Cauchy":             func(r *rand.Rand, _ int) float64 { return math.Tan(math.Pi * (r.Float64() - 0.5)) },
	"two peaks":          func(r *rand.Rand, _ int) float64 { return r.NormFloat64() + float64(r.IntN(2)*100) },
	"constant":           func(*rand.Rand, int) float64 { return 20 },
	"two values":         func(_ *rand.Rand, i int) float64 { return float64(i % 2) },
	"mostly zero":        func(r *rand.Rand, i int) float64 { return float64(max(0, r.IntN(100)-95)) },
	"rising":             func(_ *rand.Rand, i int) float64 { return float64(i) },
	"falling":            func(_ *rand.Rand, i int) float64 { return float64(-i) / 7 },
	"sine":               func(_ *rand.Rand, i int) float64 { return math.Sin(float64(i) / 100) },
	"cents":              func(r *rand.Rand, _ int) float64 { return float64(r.IntN(100_000)) / 100 },
	"small whole":        func(r *rand.Rand, _ int) float64 { return float64(r.IntN(21) - 10) },
	"powers of two":      func(r *rand.Rand, _ int) float64 { return math.Ldexp(1, r.IntN(2000)-1000) },
	"tiny":               func(r *rand.Rand, _ int) float64 { return r.NormFloat64() * 1e-300 },
	"huge":               func(r *rand.Rand, _ int) float64 { return r.NormFloat64() * 1e307 },
	"rare outliers":      func(r *rand.Rand, i int) float64 { return 1 + float64(i/4990)*1e9 + r.Float64()/1e6 },
	"every exponent":     func(r *rand.Rand, _ int) float64 { return anyFloat(r) },
}

// anyFloat returns a finite float64 of any exponent and sign that is not subnormal.
func anyFloat(r *rand.Rand) float64 {
	for {
		x := math.Float64frombits(r.Uint64())
		if x-x == 0 && math.Abs(x) >= 0x1p-1022 {
			return x
		}
	}
}

var shares = []float64{0, 1e-9, 0.001, 0.01, 0.05, 0.07, 0.25, 1. / 3, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1}

// ranked returns the number that a share of ascending numbers does not exceed. It computes the rank from q in
// thousandths of a millionth, so that 0.07 is seven hundredths.
func ranked(sorted []float64, q float64) float64 {
	parts := int(math.Round(q * 1e9))
	if q*3 == 1 {
		return sorted[(len(sorted)+2)/3-1]
	}
	return sorted[max(1, (parts*len(sorted)+999_999_999)/1_000_000_000)-1]
}

// near reports whether a quantile is within the stated error.
func near(got, want float64) bool {
	return math.Abs(got-want) <= sketch.Error*math.Abs(want)*(1+1e-12)
}

func TestSketchIsWithinItsError(t *testing.T) {
	rnd := rand.New(rand.NewPCG(19, 4))
	for name, shape := range shapes {
		for _, n := range []int{1, 2, 100, 5000} {
			var whole sketch.Sketch
			parts := make([]sketch.Sketch, 7)
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = shape(rnd, i)
				whole.Add(xs[i])
				parts[rnd.IntN(len(parts))].Add(xs[i])
			}
			slices.Sort(xs)
			for _, q := range shares {
				if got, want := whole.Quantile(q), ranked(xs, q); !near(got, want) {
					t.Errorf("%s: quantile %v of %d numbers is %v, want %v within %v", name, q, n, got, want, sketch.Error)
				}
			}
			var merged sketch.Sketch
			for _, i := range rnd.Perm(len(parts)) {
				merged.Merge(&parts[i])
			}
			if a, b := encoded(t, &merged), encoded(t, &whole); !bytes.Equal(a, b) || merged.Count() != int64(n) {
				t.Errorf("%s: the merged sketch of the parts of %d numbers has %d bytes, %d numbers, and differs from the whole one of %d bytes", name, n, len(a), merged.Count(), len(b))
			}
		}
	}
}

func encoded(t *testing.T, s *sketch.Sketch) []byte {
	t.Helper()
	b, err := s.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSketchOfSpecialNumbers(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	var s sketch.Sketch
	for _, x := range []float64{nan, inf, -inf} {
		s.Add(x)
	}
	if s.Count() != 0 || !math.IsNaN(s.Quantile(0.5)) {
		t.Errorf("NaN and infinities count: %d numbers, median %v", s.Count(), s.Quantile(0.5))
	}
	for _, x := range []float64{math.Copysign(0, -1), 0, 5e-324, -5e-324} {
		s.Add(x)
	}
	if got := encoded(t, &s); !bytes.Equal(got, []byte{1, 0, 3}) || s.Quantile(1) != 0 || math.Signbit(s.Quantile(0)) {
		t.Errorf("zeros and subnormal numbers: %v, quantiles %v to %v, want four zeros", got, s.Quantile(0), s.Quantile(1))
	}
	for _, x := range []float64{math.MaxFloat64, -math.MaxFloat64, 0x1p-1022} {
		var one sketch.Sketch
		one.Add(x)
		if got := one.Quantile(0.5); !near(got, x) {
			t.Errorf("the only number %v has the median %v", x, got)
		}
	}
	for _, q := range []float64{-0.1, 1.1, nan, inf} {
		if got := s.Quantile(q); !math.IsNaN(got) {
			t.Errorf("Quantile(%v) = %v, want NaN", q, got)
		}
	}
	var none *sketch.Sketch
	none.Add(1)
	none.Merge(&s)
	if counts, err := none.Histogram(0); none.Count() != 0 || !math.IsNaN(none.Quantile(0)) || err != nil || !slices.Equal(counts, []int64{0, 0}) {
		t.Errorf("a nil sketch has %d numbers, histogram %v, %v", none.Count(), counts, err)
	}
}

// Merging a sketch with itself, or one that is read meanwhile, leaves the other one as it is.
func TestMergeLeavesTheOther(t *testing.T) {
	var a, b sketch.Sketch
	for i := range 100 {
		a.Add(float64(i))
		b.Add(float64(-i))
	}
	before := encoded(t, &b)
	a.Merge(&b)
	a.Add(-3)
	if !bytes.Equal(encoded(t, &b), before) {
		t.Error("Merge or a later Add changed the merged sketch")
	}
	a.Merge(&a)
	if a.Count() != 402 {
		t.Errorf("a sketch of 201 numbers merged with itself has %d, want 402", a.Count())
	}
}

func TestHistogram(t *testing.T) {
	rnd := rand.New(rand.NewPCG(19, 5))
	for name, shape := range shapes {
		xs := make([]float64, 2000)
		var s sketch.Sketch
		for i := range xs {
			xs[i] = shape(rnd, i)
			s.Add(xs[i])
		}
		exact := []float64{0.25, 1, 2, 3, 10, 50, 100, 127, 128, 1024}
		for _, bounds := range [][]float64{nil, {0}, exact, {math.Inf(-1), -33.3, -1, 0, 0.1, 19.99, 777.7, math.Inf(1)}} {
			got, err := s.Histogram(bounds...)
			if err != nil || len(got) != len(bounds)+1 {
				t.Fatalf("%s: %v, %v", name, got, err)
			}
			var total int64
			for i, b := range bounds {
				total += got[i]
				low, high := int64(0), int64(0) // how many are below the bound, whichever side the doubtful ones are on
				for _, x := range xs {
					slack := sketch.Error * math.Abs(b)
					if &bounds[0] == &exact[0] || math.IsInf(b, 0) {
						slack = 0
					}
					if x < b-slack {
						low++
					}
					if x < b+slack {
						high++
					}
				}
				if total < low || total > high {
					t.Errorf("%s: %d numbers below %v, want %d to %d", name, total, b, low, high)
				}
			}
			if total += got[len(bounds)]; total != int64(len(xs)) {
				t.Errorf("%s: the histogram has %d numbers, want %d", name, total, len(xs))
			}
		}
	}
	var s sketch.Sketch
	for _, bounds := range [][]float64{{1, 1}, {2, 1}, {math.NaN()}, {1, math.NaN()}} {
		if _, err := s.Histogram(bounds...); !errors.Is(err, invalid.ErrInput) {
			t.Errorf("bounds %v: %v, want ErrInvalid", bounds, err)
		}
	}
}

// The bytes are part of the stored format.
func TestSketchEncoding(t *testing.T) {
	var s sketch.Sketch
	for _, x := range []float64{-1, 0, 0, 1, 1.02, 20, 20, 20} {
		s.Add(x)
	}
	// Key -65472 as a zigzag varint, once; then each time how many keys there are in between, and one less than the
	// count.
	want := []byte{1, 0xff, 0xfe, 0x07, 0, 0xbf, 0xff, 0x03, 1, 0xbf, 0xff, 0x03, 0, 0, 0, 0x8e, 0x02, 2}
	if got := encoded(t, &s); !bytes.Equal(got, want) {
		t.Errorf("encoded as %#v, want %#v", got, want)
	}
	var back sketch.Sketch
	back.Add(7)
	if err := back.UnmarshalBinary(want); err != nil || back.Count() != 8 || !bytes.Equal(encoded(t, &back), want) {
		t.Errorf("decoded as %d numbers, %v", back.Count(), err)
	}
	for name, data := range map[string][]byte{
		"nothing":           {},
		"another version":   {2, 0, 0},
		"text":              []byte(`{"p50":1}`),
		"cut off":           want[:len(want)-1],
		"cut in a number":   want[:3],
		"a long number":     {1, 0x80, 0x00, 0},
		"above 64 bits":     {1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"too many numbers":  {1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"a subnormal bin":   {1, 2, 0},
		"a bin of infinity": {1, 0x80, 0xff, 0x0f, 0},
		"a far bin":         {1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0},
		"too long":          append([]byte{1}, make([]byte, 4<<20)...),
	} {
		err := back.UnmarshalBinary(data)
		if !errors.Is(err, invalid.ErrInput) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
		if back.Count() != 8 {
			t.Fatalf("%s: changed the sketch", name)
		}
	}
}

// The largest sketch there is decodes again.
func TestSketchOfEveryBin(t *testing.T) {
	var s sketch.Sketch
	for bits := uint64(0x7fefffffffffffff); bits >= 1<<52; bits -= 1 << 46 {
		s.Add(-math.Float64frombits(bits))
	}
	for bits := uint64(1 << 52); bits < 0x7ff<<52; bits += 1 << 46 {
		s.Add(math.Float64frombits(bits))
	}
	var back sketch.Sketch
	if err := back.UnmarshalBinary(encoded(t, &s)); err != nil || back.Count() != s.Count() || s.Count() != 2*2046*64 {
		t.Errorf("%d numbers, one in each bin: decoded %d, %v", s.Count(), back.Count(), err)
	}
}

func FuzzSketch(f *testing.F) {
	var s sketch.Sketch
	for i := range 40 {
		s.Add(float64(i*i-20) / 3)
	}
	seed, _ := s.AppendBinary(nil)
	f.Add(seed)
	f.Add([]byte{1, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var s sketch.Sketch
		if err := s.UnmarshalBinary(data); err != nil {
			return
		}
		if again := encoded(t, &s); !bytes.Equal(again, data) {
			t.Fatalf("%x decodes to a sketch that encodes as %x", data, again)
		}
		low, high := s.Quantile(0), s.Quantile(1)
		if s.Count() > 0 && !(low <= high && low-low == 0 && high-high == 0) {
			t.Fatalf("%x: quantiles %v to %v", data, low, high)
		}
		var double sketch.Sketch
		double.Merge(&s)
		double.Merge(&s)
		if double.Count() < s.Count() {
			t.Fatalf("%x: twice it has %d numbers", data, double.Count())
		}
	})
}

func ExampleSketch() {
	var morning, evening, day sketch.Sketch
	for ms := range 1000 {
		morning.Add(float64(ms))
		evening.Add(float64(ms * 2))
	}
	day.Merge(&morning)
	day.Merge(&evening)
	counts, err := day.Histogram(10, 100, 1000)
	fmt.Printf("%d requests, median %.0f ms, p99 %.0f ms\n", day.Count(), day.Quantile(0.5), day.Quantile(0.99))
	fmt.Println(counts, err)
	// Output:
	// 2000 requests, median 668 ms, p99 1960 ms
	// [15 135 1350 500] <nil>
}

// Bins that only one of two sketches has, before, between and behind those of the other, come to their places, and a
// sketch can be merged with itself.
func TestSketchMergesBinsOfOne(t *testing.T) {
	rnd := rand.New(rand.NewPCG(19, 5))
	for range 500 {
		var a, b, whole sketch.Sketch
		for range rnd.IntN(12) {
			x, to := float64(rnd.IntN(17)-8), &a
			if rnd.IntN(2) == 0 {
				to = &b
			}
			to.Add(x)
			whole.Add(x)
		}
		other := encoded(t, &b)
		a.Merge(&b)
		if !bytes.Equal(encoded(t, &a), encoded(t, &whole)) || a.Count() != whole.Count() || !bytes.Equal(encoded(t, &b), other) {
			t.Fatalf("merged %x, want %x; the other is %x, was %x", encoded(t, &a), encoded(t, &whole), encoded(t, &b), other)
		}
		a.Merge(&a)
		if a.Count() != 2*whole.Count() {
			t.Fatalf("merged with itself, %d numbers are %d", whole.Count(), a.Count())
		}
	}
}

// What is counted beyond 2^63-1 numbers is lost, and nothing becomes negative.
func TestSketchOfTheMostNumbers(t *testing.T) {
	var s sketch.Sketch
	if err := s.UnmarshalBinary(append([]byte{1, 0}, binary.AppendUvarint(nil, math.MaxInt64-1)...)); err != nil {
		t.Fatal(err)
	}
	s.Add(0)
	s.Add(1)
	if s.Count() != math.MaxInt64 || s.Quantile(0.5) != 0 {
		t.Errorf("%d numbers with the median %v", s.Count(), s.Quantile(0.5))
	}
}
