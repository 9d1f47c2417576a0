package rollup

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Mode says how a rollup gets its numbers: Derived, ByStream, ByMessage or Once.
type Mode uint8

// The modes.
const (
	// Derived, the default, computes buckets from points, or from a finer rollup, and replaces them: whatever happens to the
	// points is in it.
	Derived Mode = iota
	// ByStream adds up events that come through a writer with a journal. A row knows up to where it holds each journal, so an
	// addition that is repeated changes nothing. Exact through retries and crashes.
	ByStream
	// ByMessage adds up events that bring an identity of their own, such as the number of a message. A row remembers those of
	// the last while (Options.Remember): the same one does not count again. Exact within it.
	ByMessage
	// Once adds up events by one attempt each. Where the answer is lost, nobody knows whether the event counts. It is
	// the cheapest, and never counts twice.
	Once
)

var modeNames = []string{catalog.Derived, catalog.ByStream, catalog.ByMessage, catalog.Once}

// String returns the name of m.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Options are what a rollup may decide. The zero value derives it from points and keeps it for ever.
type Options struct {
	// Mode says how the rollup comes by its numbers. Zero is Derived.
	Mode Mode
	// From, of a derived rollup, is the name of a finer one of the same schema with the same measures, from whose buckets this
	// one is computed. Its buckets lie within the buckets of this one. Empty is from the points.
	From string
	// Retention is the class that buckets are kept in: as long after their start as its policy says. Its families hold
	// aggregates and are the rollup's own: they are named after the class, with an ending. Zero is "keep", for ever.
	// tsdb.SchemaOptions.RollupAges ends buckets of some tenants earlier.
	Retention gc.Class
	// Lateness is how long after its end a bucket stays open, for points that come late. Zero is one minute. Points that come
	// later still are in it too, after the next run of a worker; reads show them at once.
	Lateness time.Duration
	// Span is how much of time one row holds, a multiple of the width of a bucket; of 15 minutes where buckets follow a clock
	// that is changed. Zero is about 1 day for buckets below an hour, 30 days for those below a day, and 400 days for others; by
	// stream at most a day, or one bucket, as a row takes events of at most 1,000 journals, and every pod that is replaced may
	// begin a journal. A row holds at most 2,000 buckets. The span of a rollup that is stored cannot change: Ensure and Verify
	// name it where it differs.
	Span time.Duration
	// Remember, of a rollup by message, is how long a row remembers a message: the same one does not count again within it.
	// Zero is 24 hours, which is longer than most queues deliver again; 1 minute to 30 days, in whole milliseconds.
	Remember time.Duration
	// MaxMessages, of a rollup by message, is about how many messages a row remembers at once, each in some 100 bytes. One
	// that is too many is rejected with ErrTooManyMessages. They are counted in 16 parts, so that the first one that is
	// rejected may come when the row is only about nine tenths full. Zero is 10,000; at least 16, at most 100,000.
	MaxMessages int
}

// Rollup is the definition of a rollup of values of type T: its buckets and its measures. List it in the
// SchemaOptions.Rollups of one schema; For binds it to a repository. It is immutable and safe for concurrent use.
type Rollup[T any] struct {
	name     string
	grid     window.Grid
	measures []Measure[T]
	opts     Options
	entry    catalog.Rollup
	layout   layout
	added    *rollupadd.Shape // nil for a rollup that is derived
}

// Define returns a rollup: its name within the schema (1 to 16 bytes of a-z 0-9 _), the grid of its buckets, and its
// measures, at most 16. One without measures counts points. It does no I/O. Errors match ErrInvalid, gc.ErrInvalid or gc.ErrVersions.
func Define[T any](name string, grid window.Grid, measures []Measure[T], opts Options) (*Rollup[T], error) {
	r, err := define(name, grid, measures, opts)
	if err != nil {
		return nil, fmt.Errorf("rollup %s: %w", invalid.Quote(name), err)
	}
	return r, nil
}

// MustDefine is Define for package variables. It panics where Define fails.
func MustDefine[T any](name string, grid window.Grid, measures []Measure[T], opts Options) *Rollup[T] {
	r, err := Define(name, grid, measures, opts)
	if err != nil {
		panic(err)
	}
	return r
}

// Name returns the rollup's name.
func (r *Rollup[T]) Name() string {
	if r == nil {
		return ""
	}
	return r.name
}

// Grid returns the grid of the rollup's buckets.
func (r *Rollup[T]) Grid() window.Grid {
	if r == nil {
		return window.Grid{}
	}
	return r.grid
}

func (r *Rollup[T]) describe() catalog.Rollup {
	if r == nil {
		return catalog.Rollup{}
	}
	return r.entry
}

const (
	defaultLateness = time.Minute
	maxBuckets      = 2000 // in a row
	// zoneStep is what a mark stands for where buckets follow a clock that is changed: every zone's hours begin on one of
	// its multiples.
	zoneStep = 15 * time.Minute
)

func define[T any](name string, grid window.Grid, measures []Measure[T], opts Options) (*Rollup[T], error) {
	if !catalog.ShortName(name) {
		return nil, invalid.New(ErrInvalid, "name", invalid.Quote(name), "1 to 16 bytes of a-z 0-9 _")
	}
	if err := grid.Check(); err != nil {
		return nil, err
	}
	if err := checkMeasures(measures); err != nil {
		return nil, err
	}
	r := &Rollup[T]{name: name, grid: grid, measures: append([]Measure[T](nil), measures...), opts: opts}
	for i := range r.measures {
		if r.measures[i].Aggregates == 0 {
			r.measures[i].Aggregates = All
		}
	}
	if err := r.resolve(); err != nil {
		return nil, err
	}
	every, zone, in := strings.Cut(grid.String(), " in ")
	if !in {
		zone = "UTC"
	}
	r.entry = catalog.Rollup{
		Name:  name,
		Kind:  opts.Mode.String(),
		Every: every,
		Zone:  zone,
		From:  opts.From,
		Span:  r.opts.Span.Milliseconds(),
		Late:  r.opts.Lateness.Milliseconds(),
		Class: catalog.Class{Name: r.opts.Retention.Name, Policy: r.opts.Retention.Policy.String()},
	}
	switch opts.Mode {
	case Derived:
		r.entry.Step = r.step().Milliseconds()
	case ByMessage:
		r.entry.Remember, r.entry.MaxMessages = r.opts.Remember.Milliseconds(), r.opts.MaxMessages
	}
	for i := range r.measures {
		r.entry.Measures = append(r.entry.Measures, r.measures[i].entry())
	}
	r.layout = newLayout(r.opts.Retention.Name, r.measures, opts.Mode == Derived)
	if opts.Mode != Derived {
		var err error
		if r.added, err = rollupadd.NewShape(&r.entry); err != nil {
			return nil, err
		}
	}
	return r, nil
}
