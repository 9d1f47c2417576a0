package window

import (
	"encoding/json"
	"iter"
	"math"
	"math/bits"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// maxColumns is how many columns a line may have.
const maxColumns = 100_000

// Line is the line of a measure in an interval, for a chart. It has not been read yet: [ReadLine] returns it.
type Line struct {
	// Rollup is the name of the rollup whose buckets are read from From (inclusive) to To (exclusive). The rest of the
	// interval is read from the points. It is empty, and From and To are zero, if the points are all that is read.
	Rollup   string
	From, To time.Time
	// Exact is true if the samples are those of the points, or draw the same pixels. It is false for LTTB from a
	// rollup.
	Exact bool
	// Samples reads the samples, oldest first. Each loop over it reads from the table, and leaving the loop ends the
	// read.
	Samples iter.Seq2[LineSample, error]
}

// LineSample is one point of a line.
type LineSample struct {
	Time  time.Time
	Value float64
	// Break is true if the line is interrupted before this sample.
	Break bool
	// Approx is true for the lowest and the highest number of a bucket of a rollup. Their points are somewhere in the
	// bucket, which is not wider than a column.
	Approx bool
}

// MarshalJSON implements json.Marshaler: {"time":…,"value":…}, with break and approx where they are true.
func (s LineSample) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Time   instant.Time `json:"time"`
		Value  float64      `json:"value"`
		Break  bool         `json:"break,omitempty"`
		Approx bool         `json:"approx,omitempty"`
	}{instant.Time{Time: s.Time}, s.Value, s.Break, s.Approx})
}

// LineOptions describe the chart that a line is drawn on.
type LineOptions struct {
	// Columns is the width of the chart in pixels: 1 to 100,000. It is required.
	Columns int
	// MaxGap is the longest time between two points that the line bridges; after a longer one it breaks. An
	// interruption inside one column is not visible and is not kept. Zero never breaks the line.
	MaxGap time.Duration
	// LTTB keeps one sample for each column, where M4 keeps up to four: see [ReadLine].
	LTTB bool
	// FromPoints reads points only, as Options.FromPoints does.
	FromPoints bool
}

// lineColumns divides an interval into columns of equal width.
type lineColumns struct {
	start, end time.Time
	unit       uint64 // of width, in nanoseconds: 1, or 1000 for an interval of centuries
	width      uint64 // of the interval
	n          int
}

func newLineColumns(in tsdb.Interval, o LineOptions) (lineColumns, error) {
	switch {
	case o.Columns < 1 || o.Columns > maxColumns:
		return lineColumns{}, invalid.New(tsdb.ErrInvalid, "Columns", strconv.Itoa(o.Columns), "1 to "+strconv.Itoa(maxColumns))
	case o.MaxGap < 0:
		return lineColumns{}, invalid.New(tsdb.ErrInvalid, "MaxGap", o.MaxGap.String(), "0 for none, or more")
	}
	start, end, err := closed(in)
	if err != nil {
		return lineColumns{}, err
	}
	c := lineColumns{start: start, end: end, unit: 1, n: o.Columns}
	if end.Sub(start) == math.MaxInt64 {
		c.unit = 1000
	}
	c.width = c.since(end)
	return c, nil
}

// since returns the units from the start of the interval to a time in it, or to its end.
func (c lineColumns) since(t time.Time) uint64 {
	seconds, nanos := instant.Between(c.start, t)
	return uint64(seconds)*(1e9/c.unit) + uint64(nanos)/c.unit
}

// at returns the time that many units after the start.
func (c lineColumns) at(units uint64) time.Time {
	perSecond := 1e9 / c.unit
	return time.Unix(c.start.Unix()+int64(units/perSecond), int64(c.start.Nanosecond())+int64(units%perSecond*c.unit))
}

// nanosBetween returns the nanoseconds from one time to another.
func nanosBetween(from, to time.Time) float64 {
	seconds, nanos := instant.Between(from, to)
	return float64(seconds)*1e9 + float64(nanos)
}

// of returns the part in which a time of the interval is, if each column is divided into parts.
func (c lineColumns) of(t time.Time, parts int) int {
	d := min(c.since(t), c.width-1) // in microseconds, the end may be rounded down to t
	hi, lo := bits.Mul64(d, uint64(c.n*parts))
	at, _ := bits.Div64(hi, lo, c.width) // less than the number of parts, as d is less than the width
	return int(at)
}

// reduce calls take with each sample until it returns false, then end. It yields errors: a *tsdb.PointError when it
// comes, and any other one as the last pair.
func reduce(samples iter.Seq2[LineSample, error], yield func(LineSample, error) bool, take func(LineSample) bool, end func()) {
	for s, err := range samples {
		if err == nil {
			if !take(s) {
				return
			}
			continue
		}
		if _, one := pointError(err); !yield(LineSample{}, err) || !one {
			return
		}
	}
	end()
}
