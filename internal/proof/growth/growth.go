// Package growth decides from samples of a process whether its memory, or something else that it holds, grows without
// end.
package growth

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Quantity is something that a process holds.
type Quantity int

// The quantities of a Sample.
const (
	Heap       Quantity = iota // bytes in use after a garbage collection
	Goroutines                 // all of the process
	Files                      // open file descriptors
	Channels                   // gRPC channels, with their subchannels and sockets
	Streams                    // gRPC calls that have begun and not ended
	quantities
)

func (q Quantity) String() string {
	if q < 0 || q >= quantities {
		return fmt.Sprintf("Quantity(%d)", int(q))
	}
	return [...]string{"heap", "goroutines", "files", "channels", "streams"}[q]
}

// Sample is what a process holds at one time. A value below 0 is unknown.
type Sample struct {
	At     time.Duration // since the first sample
	Values [quantities]int64
}

// Bound is how much of a quantity may grow.
type Bound struct {
	// PerHour is the slope that is allowed.
	PerHour float64
	// Least is the growth over the judged samples that is too little to count: the noise of the quantity.
	Least float64
}

// Bounds are the bounds of all quantities.
type Bounds [quantities]Bound

// Default allows what no program notices in a month, and the noise of an idle Go process.
var Default = Bounds{
	Heap:       {PerHour: 512 << 10, Least: 512 << 10},
	Goroutines: {PerHour: 4, Least: 12},
	Files:      {PerHour: 1, Least: 4},
	Channels:   {PerHour: 2, Least: 6},
	Streams:    {PerHour: 2, Least: 6},
}

// Verdict is the judgement about one quantity.
type Verdict struct {
	Quantity Quantity
	Grows    bool
	// First and Last are medians of the first and the last quarter of the judged samples, Most is the highest value.
	First, Last, Most float64
	// Slope is the growth in an hour. With a probability of 99.9 %, the true slope of independent samples is between
	// Low and High.
	Slope, Low, High float64
	// Bound is the bound that was applied. Growth above High would have been found.
	Bound Bound
	// Samples is how many samples were judged, and Span their time. Below MinSamples nothing is judged.
	Samples int
	Span    time.Duration
}

const (
	// MinSamples is how many samples a judgement needs, in addition to the warm-up.
	MinSamples = 16
	// warmUp is the share of the samples, from the first, that are not judged: pools and caches are still filling.
	warmUp = 0.25
	// z is the normal quantile of the interval from Low to High.
	z = 3.29
	// mostJudged bounds the pairs of samples: longer runs are judged by the medians of groups of samples.
	mostJudged = 300
)

// Judge judges each quantity that all samples know. Samples are in order of time, at about equal distances. Its time
// and memory do not depend on the number of samples beyond about 300.
//
// The slope is the median of the slopes of all pairs of samples (Theil and Sen), so that a few peaks do not change it.
// A quantity grows if the lower end of the slope's interval (Sen 1968, from the variance of Kendall's S) is above the
// bound, the growth over the run is not noise, and the second half of the run grows too: a single step, or a cache that
// has filled, is not growth.
func Judge(samples []Sample, bounds Bounds) []Verdict {
	samples = samples[int(warmUp*float64(len(samples))):]
	var all []Verdict
	for q := range quantities {
		if slices.ContainsFunc(samples, func(s Sample) bool { return s.Values[q] < 0 }) {
			continue
		}
		all = append(all, judge(samples, q, bounds[q]))
	}
	return all
}

func judge(samples []Sample, q Quantity, b Bound) Verdict {
	v := Verdict{Quantity: q, Bound: b, Samples: len(samples)}
	if len(samples) < MinSamples {
		return v
	}
	v.Span = samples[len(samples)-1].At - samples[0].At
	points := condense(samples, q)
	quarter := len(points) / 4
	v.First, v.Last = middle(points[:quarter]), middle(points[len(points)-quarter:])
	for _, s := range samples {
		v.Most = max(v.Most, float64(s.Values[q]))
	}
	v.Slope, v.Low, v.High = slope(points)
	half := points[len(points)/2:]
	late, _, _ := slope(half)
	_, lateLow, _ := slopeWithin(half, z/2)
	v.Grows = v.Low > b.PerHour && v.Slope*v.Span.Hours() > b.Least && late > b.PerHour && lateLow > 0
	return v
}

// point is a value at a time, in hours.
type point struct{ x, y float64 }

// condense returns at most mostJudged points: the medians of groups of samples.
func condense(samples []Sample, q Quantity) []point {
	group := (len(samples) + mostJudged - 1) / mostJudged
	points := make([]point, 0, len(samples)/group+1)
	for part := range slices.Chunk(samples, group) {
		ps := make([]point, len(part))
		for i, s := range part {
			ps[i].y = float64(s.Values[q])
		}
		points = append(points, point{part[len(part)/2].At.Hours(), middle(ps)})
	}
	return points
}

func middle(points []point) float64 {
	ys := make([]float64, len(points))
	for i, p := range points {
		ys[i] = p.y
	}
	return median(ys)
}

// median sorts values, and returns the one in the middle.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

func slope(points []point) (median, low, high float64) { return slopeWithin(points, z) }

// slopeWithin returns the median slope of all pairs of points, and the ends of its interval.
func slopeWithin(points []point, z float64) (mid, low, high float64) {
	var slopes []float64
	for i, a := range points {
		for _, b := range points[i+1:] {
			if b.x > a.x {
				slopes = append(slopes, (b.y-a.y)/(b.x-a.x))
			}
		}
	}
	if len(slopes) == 0 {
		return 0, math.Inf(-1), math.Inf(1)
	}
	mid = median(slopes)
	n := float64(len(points))
	c := z * math.Sqrt(n*(n-1)*(2*n+5)/18)
	from := int((float64(len(slopes)) - c) / 2)
	if from < 0 {
		return mid, math.Inf(-1), math.Inf(1)
	}
	return mid, slopes[from], slopes[len(slopes)-1-from]
}

// String returns a line for reports.
func (v Verdict) String() string {
	if v.Samples < MinSamples {
		return fmt.Sprintf("%s: %d samples are too few to judge, want %d", v.Quantity, v.Samples, MinSamples)
	}
	format := func(f float64) string { return fmt.Sprintf("%.4g", f) }
	if v.Quantity == Heap {
		format = func(f float64) string { return fmt.Sprintf("%.2f MiB", f/(1<<20)) }
	}
	word := "does not grow"
	switch {
	case v.Grows:
		word = "GROWS"
	case v.High > v.Bound.PerHour:
		word = "no growth is proven; growth above " + format(v.High) + " an hour is excluded"
	}
	return fmt.Sprintf("%s: %s: %s an hour (99.9%%: %s to %s; allowed %s) in %v; median %s at first and %s at last, at most %s; %d samples",
		v.Quantity, word, format(v.Slope), format(v.Low), format(v.High), format(v.Bound.PerHour), v.Span.Round(time.Second), format(v.First), format(v.Last), format(v.Most), v.Samples)
}

// Report returns the lines of verdicts, and whether any quantity grows.
func Report(verdicts []Verdict) (text string, grows bool) {
	var b strings.Builder
	for _, v := range verdicts {
		b.WriteString("\n\t" + v.String())
		grows = grows || v.Grows
	}
	return b.String(), grows
}
