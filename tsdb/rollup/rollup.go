package rollup

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/nest"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Mode says how a rollup gets its numbers: Derived, ByStream, ByMessage or Once.
type Mode uint8

// The modes.
const (
	// Derived is the default. Workers compute buckets from points or from a finer rollup. Buckets follow every change
	// of the points.
	Derived Mode = iota
	// ByStream adds events that pass through a writer with a journal. A row stores how much of each journal it
	// contains, so a repeated addition changes nothing. Exact through retries and crashes.
	ByStream
	// ByMessage adds events that have an identity, such as the ID of a message. A row remembers the messages of the
	// last Options.Remember and counts each of them once. Exact within that time.
	ByMessage
	// Once adds each event in a request with an idempotency token. If no response comes, it is unknown whether the
	// event counts. Once is the cheapest mode, and never counts an event twice.
	Once
)

var modeNames = []string{catalog.Derived, catalog.ByStream, catalog.ByMessage, catalog.Once}

// text returns the name of m.
func (m Mode) text() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Options configure a rollup. The zero value derives it from points and keeps it forever.
type Options struct {
	// Mode says how the rollup gets its numbers. Zero is Derived.
	Mode Mode
	// From names the finer rollup that a derived rollup is computed from. Both are in the same schema and have the
	// same measures. Each bucket of the finer one must be inside one bucket of this one. Empty means: computed from
	// the points.
	From string
	// Retention is the class of the buckets. Its policy counts the age from the start of a bucket. The rollup has its
	// own column families, because they store aggregates; their names are the class's name with a suffix. Zero is
	// "keep", forever. tsdb.SchemaOptions.RollupAges sets shorter ages for some tenants.
	Retention gc.Class
	// Lateness is how long after its end a bucket stays open, for late points. Zero is one minute. The next pass of a
	// worker adds points that are even later; reads include them immediately.
	Lateness time.Duration
	// Span is how much time one row covers. It is a multiple of the bucket width, or of 15 minutes if the buckets
	// follow a zone that changes its clock or are wider than a day; that of a derived rollup is then at most 12,500
	// hours. A row has at most 2,000 buckets. Zero is about 1 day for buckets below an hour, 30 days for buckets below
	// a day, and 400 days for others. With ByStream it is at most a day or one bucket, because a row accepts events of
	// at most 1,000 journals and each replaced pod may start a journal. The span of a stored rollup cannot change:
	// Ensure and Verify report a difference.
	Span time.Duration
	// Remember is how long a row of a ByMessage rollup remembers a message: within it, the same message does not
	// count again. Zero is 24 hours, longer than most queues redeliver. Allowed are 1 minute to 30 days, in whole
	// milliseconds.
	Remember time.Duration
	// MaxMessages is about how many messages a row of a ByMessage rollup remembers at once, each in some 100 bytes. A
	// row that is full rejects new ones with ErrTooManyMessages. Messages are counted in 16 parts, of which the fullest
	// decides: with 10,000 the first rejection may come when the row is about nine tenths full, with 1,000 at seven
	// tenths, with 100 at three tenths. Zero is 10,000; allowed are 16 to 100,000.
	MaxMessages int
}

// definition is what package tsdb knows of a rollup.
type definition = inside.Handle[*nest.Definition]

// Rollup defines a rollup of values of type T: its buckets and its measures. List it in the SchemaOptions.Rollups of
// one schema. For returns a reader of it. It is immutable and safe for concurrent use.
type Rollup[T any] struct {
	definition
	name     string
	grid     window.Grid
	measures []Measure[T]
	opts     Options
	entry    catalog.Rollup
	layout   layout
	added    *rollupadd.Shape // nil for a rollup that is derived
	widest   func() time.Duration
	bare     func() *Rollup[T] // without sketches
	// readOnly says that it is that of the catalogue. It lacks something if a measure is unknown, and is blind if all
	// are, or if it only counts points.
	readOnly, lacks, blind bool
}

// Define returns a rollup. The name is unique within the schema: 1 to 16 bytes of a-z 0-9 _. The grid defines the
// buckets, of 1 second or more in whole milliseconds. At most 16 measures are allowed; a rollup without measures counts
// points. Define does no I/O. Errors match tsdb.ErrInvalid.
func Define[T any](name string, grid window.Grid, measures []Measure[T], opts Options) (*Rollup[T], error) {
	r, err := define(name, grid, measures, opts)
	if err != nil {
		return nil, fmt.Errorf("rollup %s: %w", invalid.Quote(name), invalid.Input(err))
	}
	return r, nil
}

// MustDefine is Define for package variables. It panics if Define fails.
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

const (
	defaultLateness = time.Minute
	maxBuckets      = 2000 // in a row
	// maxEndsWidth bounds the times of first and last numbers, which are nanoseconds from the start of a bucket.
	maxEndsWidth = 100 * 366 * 24 * time.Hour
	// zoneStep is the time that one mark covers if buckets follow a zone that changes its clock: the hours of every
	// zone start at multiples of it.
	zoneStep = 15 * time.Minute
)

func define[T any](name string, grid window.Grid, measures []Measure[T], opts Options) (*Rollup[T], error) {
	if !catalog.ShortName(name) {
		return nil, invalid.New(tsdb.ErrInvalid, "name", invalid.Quote(name), "1 to 16 bytes of a-z 0-9 _")
	}
	if err := grid.Check(); err != nil {
		return nil, err
	}
	if err := checkMeasures(measures); err != nil {
		return nil, err
	}
	r := &Rollup[T]{name: name, grid: grid, measures: append([]Measure[T](nil), measures...), opts: opts}
	r.widest = sync.OnceValue(func() time.Duration { return nest.Longest(grid) })
	for i := range r.measures {
		m := &r.measures[i]
		m.resolve()
		if extra := m.Aggregates &^ window.Basic; extra != 0 && opts.Mode != Derived {
			return nil, invalid.New(tsdb.ErrInvalid, "Aggregates of measure "+strconv.Itoa(i), extra.String(), "some of "+window.Basic.String()+
				" where events are added: they may come in any order, on which others depend, and nothing can be added to a stored sketch")
		}
		if m.Field != "" && opts.Mode != Derived {
			return nil, invalid.New(tsdb.ErrInvalid, "Field of measure "+strconv.Itoa(i), invalid.Quote(m.Field), "a function where events are added: their payloads are not stored")
		}
		if m.Added && opts.Mode != Derived {
			return nil, invalid.New(tsdb.ErrInvalid, "Added of measure "+strconv.Itoa(i), "true", "false where events are added: nothing can compute the buckets of before")
		}
		if m.has(window.Ends) && r.width() > maxEndsWidth {
			return nil, invalid.New(tsdb.ErrInvalid, "width", grid.String(), "at most 100 years for a measure with the aggregates ends")
		}
	}
	if err := r.resolve(); err != nil {
		return nil, err
	}
	if err := r.checkSketches(); err != nil {
		return nil, err
	}
	every, zone, in := strings.Cut(grid.String(), " in ")
	if !in {
		zone = "UTC"
	}
	r.entry = catalog.Rollup{
		Name:  name,
		Kind:  opts.Mode.text(),
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
	r.definition = inside.Hold(&nest.Definition{Entry: r.entry, Grid: grid, Width: r.computedWidth, Is: isRollup[T], Source: source[T]{r}})
	r.bare = sync.OnceValue(r.barely)
	var err error
	if opts.Mode != Derived {
		r.added, err = rollupadd.NewShape(&r.entry)
	}
	return r, err
}

func isRollup[T any](r any) bool { _, ok := r.(*Rollup[T]); return ok }
