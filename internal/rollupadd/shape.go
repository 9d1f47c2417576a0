package rollupadd

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// ErrInvalid is wrapped by errors about an invalid event or description of a rollup.
var ErrInvalid = rowkey.ErrInvalid

const (
	// maxMeasures and most are limits of package rollup.
	maxMeasures = 16
	most        = 1 << 53
	// maxBucket is the greatest timestamp of a cell, an int64 of microseconds, in milliseconds.
	maxBucket = math.MaxInt64 / 1000
)

// Shape is how the events of a rollup are stored. It is immutable.
type Shape struct {
	class    string // the class's name, without the suffixes of families
	span     int64
	measures []measure
	remember time.Duration
	messages int // the most messages in a row
}

type measure struct {
	name        string
	sum, lo, hi bool // whether they are stored, as the count always is
	max         int64
}

// NewShape returns the shape of a rollup as the catalogue describes it.
func NewShape(e *catalog.Rollup) (*Shape, error) {
	s := &Shape{class: e.Class.Name, span: e.Span, remember: time.Duration(e.Remember) * time.Millisecond, messages: e.MaxMessages}
	switch {
	case e.Class.Name == "":
		return nil, invalid.New(ErrInvalid, "class", "empty", "a name")
	case e.Span < 1:
		return nil, invalid.New(ErrInvalid, "span", strconv.FormatInt(e.Span, 10), "at least 1 ms")
	case len(e.Measures) > maxMeasures:
		return nil, invalid.New(ErrInvalid, "measures", strconv.Itoa(len(e.Measures)), fmt.Sprintf("at most %d", maxMeasures))
	}
	for _, em := range e.Measures {
		limit, err := strconv.ParseFloat(em.Max, 64)
		if err != nil || em.Decimals < 0 || em.Decimals > 9 || !(limit > 0) || limit*math.Pow10(em.Decimals) > most {
			return nil, invalid.New(ErrInvalid, "measure "+invalid.Quote(em.Name), invalid.Quote(em.Max), "a magnitude above 0, and with its decimals at most 2^53")
		}
		s.measures = append(s.measures, measure{
			name: em.Name,
			sum:  slices.Contains(em.Aggregates, "sum"),
			lo:   slices.Contains(em.Aggregates, "min"),
			hi:   slices.Contains(em.Aggregates, "max"),
			max:  int64(math.Round(limit * math.Pow10(em.Decimals))),
		})
	}
	return s, nil
}

// control returns the family of a row's cells that are not aggregates.
func (s *Shape) control() string { return s.class + catalog.ControlEnding }

// Row returns the start of the row of a bucket. Both are in milliseconds.
func (s *Shape) Row(bucket int64) int64 { return bucket - bucket%s.span }

// end returns the cell timestamp of a row's cells that are not aggregates.
func (s *Shape) end(row int64) bigtable.Timestamp {
	return bigtable.Timestamp((row + s.span - 1) * 1000)
}

// CheckBucket refuses the start of a bucket that is out of range for a cell.
func CheckBucket(bucket, span int64) error {
	if bucket < 0 || bucket > maxBucket-2*span-spread {
		return invalid.New(ErrInvalid, "bucket", strconv.FormatInt(bucket, 10)+" ms", "a start at or after 1970-01-01T00:00:00Z that a cell can have")
	}
	return nil
}

// Number is an event's number for a measure, as a whole multiple of the measure's unit. The zero Number means that
// there is none.
type Number struct {
	Value int64
	Has   bool
}

// Event is one event: the start of its bucket in milliseconds, and a number for each measure.
type Event struct {
	Bucket  int64
	Numbers []Number
}

// Check refuses an event that does not fit this rollup.
func (s *Shape) Check(e Event) error {
	if len(e.Numbers) != len(s.measures) {
		return invalid.New(ErrInvalid, "event", fmt.Sprintf("%d numbers", len(e.Numbers)), fmt.Sprintf("%d, one for each measure", len(s.measures)))
	}
	for i, n := range e.Numbers {
		if m := &s.measures[i]; n.Value > m.max || n.Value < -m.max {
			return invalid.New(ErrInvalid, "measure "+m.name, strconv.FormatInt(n.Value, 10), fmt.Sprintf("a magnitude of at most %d", m.max))
		}
	}
	return CheckBucket(e.Bucket, s.span)
}
