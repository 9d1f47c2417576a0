package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// CopyOptions configure a copy. The zero value copies the whole table, at 10,000 points a second.
type CopyOptions struct {
	// State continues a copy: the State that was saved last. The zero State begins one.
	State State
	// Save saves the State, so that a copy that is killed continues near to where it was. Copy calls it about once a
	// second, and at the end, never twice at once. Its error ends the copy. It must replace the saved State as a whole.
	// Nil saves nothing.
	Save func(State) error
	// Rate is how many points are written in a second at most, 1 to 10,000,000. Zero is 10,000: a node of Bigtable
	// takes about 14,000 small writes.
	Rate int
	// Concurrency is how many ranges of the table are copied at the same time, up to 64. Zero is 4. Each holds about 4
	// MiB in memory, or its largest row.
	Concurrency int
	// Overlap is how far a catch-up pass reads back before the start of the pass before it. If cells say when they were
	// written, it covers the difference of clocks and the half hour by which an app profile with Data Boost may lag;
	// zero is then an hour. If they do not, it covers how late points arrive; zero is then 24 hours.
	Overlap time.Duration
}

func (o CopyOptions) resolve(m *Mapping) (CopyOptions, error) {
	for _, err := range []error{
		invalid.Range(ErrInvalid, "Rate", o.Rate, 0, 10_000_000, "0 for 10000, or up to 10000000"),
		invalid.Range(ErrInvalid, "Concurrency", o.Concurrency, 0, 64, "0 for 4, or up to 64"),
		invalid.Range(ErrInvalid, "Overlap", o.Overlap, 0, 0, "0 for the default, or more"),
	} {
		if err != nil {
			return o, err
		}
	}
	if o.Rate == 0 {
		o.Rate = 10_000
	}
	if o.Concurrency == 0 {
		o.Concurrency = 4
	}
	if o.Overlap == 0 {
		if o.Overlap = 24 * time.Hour; m.cells == cellWritten {
			o.Overlap = time.Hour
		}
	}
	return o, nil
}

// Copy copies the points of the foreign table to the mapping's dataset, and creates the dataset if the store does not
// have it. Points are written like all points, at the same key each time, so a repeated copy changes nothing. Copy
// continues with the State's pass, and refuses a State of another mapping, of other tables or of a dataset that the
// store no longer has with ErrState. If the pass was complete, it begins another one, which catches up: it copies what
// was written since the start of the pass before. Which writes a catch-up pass finds depends on the mapping's cells:
//
//   - written: each row with a cell that was written since. It misses only writes with a made-up timestamp, and
//     deletions.
//   - time, and tables with times in cells: points whose time is not older than that by more than Overlap. It misses
//     later ones, changes of older points, and deletions.
//   - unknown: the same points, but the whole table is read.
//
// The start of a pass is a time of the store's clock, which must not be ahead by more than Overlap. If it was set back
// since then, the next pass copies the whole table.
//
// So the copy is exact after the programs that write to the foreign table have stopped, a last pass has run, and Verify
// has found no difference.
//
// Something unfit ends the copy with an *Unfit, unless the mapping skips its reason. If a write fails, Copy ends with
// an error that matches tsdb.ErrRejected or tsdb.ErrUnknown. In any case the State says what is done. Copy is bounded
// by ctx. It costs a request for every 1,000 rows or 4 MiB, the same for writing, and conditional requests if the
// dataset needs them.
func (s *Source) Copy(ctx context.Context, store *tsdb.Store, opts CopyOptions) (_ State, err error) {
	if err := s.check(); err != nil {
		return opts.State, err
	}
	opts, err = opts.resolve(s.m)
	if err != nil {
		return opts.State, err
	}
	if s.m.tenant.String() == draftTenant {
		return opts.State, invalid.New(ErrInvalid, "tenant", draftTenant+", as Describe drafts it", "the tenant whose points these are")
	}
	to, err := s.open(ctx, store)
	if err != nil {
		return opts.State, err
	}
	c := &copying{Source: s, to: to, opts: opts, state: opts.State.clone(), pace: pace{rate: opts.Rate}}
	if err := c.begin(ctx); err != nil {
		return opts.State, err
	}
	if err := to.create(ctx); err != nil {
		return opts.State, err
	}
	err = c.run(ctx)
	return c.state, err
}

// copying is one call of Copy.
type copying struct {
	*Source
	to   *target
	opts CopyOptions
	pace pace

	mu    sync.Mutex // of what follows
	state State
	saved time.Time
}

// begin prepares the state's pass.
func (c *copying) begin(ctx context.Context) error {
	st := &c.state
	now := c.to.in.Clock().UTC()
	if st.Mapping == "" {
		keys, err := c.splits(ctx)
		if err != nil {
			return err
		}
		*st = State{Mapping: c.m.id, Dataset: c.m.dataset.Name, Source: c.to.from, Store: c.to.at, Pass: 1, Started: now, Ranges: rangesOf(keys), Skipped: map[string]int64{}}
		return nil
	}
	if st.Mapping != c.m.id || st.Dataset != c.m.dataset.Name {
		return fmt.Errorf("%w: it is of the mapping %s and dataset %s; this mapping is %s of dataset %s. Continue with the unchanged mapping file, or without a state", ErrState, short(st.Mapping), short(st.Dataset), c.m.id, c.m.dataset.Name)
	}
	if err := c.sameTables(); err != nil {
		return err
	}
	if err := st.check(); err != nil {
		return err
	}
	if st.Complete() {
		since := st.Started
		st.next(now)
		if st.Since = &since; since.After(now) { // the clock was ahead: what was written meanwhile has earlier times
			st.Since = nil
		}
	}
	return nil
}

// sameTables refuses the state of a copy between other tables, which would leave out what that one has copied.
func (c *copying) sameTables() error {
	st := &c.state
	for _, name := range []struct {
		what      string
		had, have string
	}{{"foreign table", st.Source, c.to.from}, {"store's table", st.Store, c.to.at}} {
		if name.had != "" && name.have != "" && name.had != name.have {
			return fmt.Errorf("%w: its %s is %s; this copy's is %s. Continue with the same tables, or without a state", ErrState, name.what, short(name.had), name.have)
		}
	}
	if st.begun() && !c.to.found {
		return fmt.Errorf("%w: it has copied rows, but the store has no dataset %s: it is of another store, or the dataset was deleted. Copy without a state", ErrState, c.m.dataset.Name)
	}
	return nil
}

// run copies the ranges that are not done.
func (c *copying) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	work := make(chan int)
	for range min(c.opts.Concurrency, len(c.state.Ranges)) {
		wg.Go(func() {
			for i := range work {
				if err := c.copyRange(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range c.state.Ranges { // workers change only elements that were handed over
		c.mu.Lock()
		done := c.state.Ranges[i].Done
		c.mu.Unlock()
		if done {
			continue
		}
		select {
		case work <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(work)
	wg.Wait()
	err := context.Cause(ctx)
	if c.opts.Save != nil {
		err = errors.Join(err, c.opts.Save(c.state.clone()))
	}
	return err
}

// copyRange copies the rest of a range.
func (c *copying) copyRange(ctx context.Context, i int) error {
	c.mu.Lock()
	r := c.state.Ranges[i]
	c.mu.Unlock()
	start := string(r.Start)
	if r.After != nil {
		start = string(r.After) + "\x00"
	}
	for {
		if err := ctxerr.Of(ctx); err != nil {
			return err
		}
		rows, more, err := c.changed(ctx, start, string(r.End))
		if err != nil {
			return err
		}
		n, err := c.writeRows(ctx, rows.whole)
		if err != nil {
			return err
		}
		if more {
			start = rows.last + "\x00"
			r.After = []byte(rows.last)
		}
		r.Done = !more
		if err := c.advance(i, r, n); err != nil || !more {
			return err
		}
	}
}

// found are rows of a range that are to be copied.
type found struct {
	whole []*bt.Row
	last  string // the last key that was looked at
}

// changed reads the next rows that a pass copies.
func (c *copying) changed(ctx context.Context, start, limit string) (found, bool, error) {
	var filter bigtable.Filter
	oneRow := c.m.inKey // a point is a row, which is read as a whole
	since := c.since()
	if !since.IsZero() && c.m.cells != cellUnknown {
		filter = bigtable.TimestampRangeFilter(since, time.Time{})
		if oneRow {
			filter = bigtable.ChainFilters(filter, keysOnly())
		}
	}
	rows, more, err := c.chunk(ctx, start, limit, filter, chunkRows)
	if err != nil || len(rows) == 0 {
		return found{}, more, err
	}
	out := found{whole: rows, last: rows[len(rows)-1].Key()}
	if filter == nil || !oneRow {
		return out, more, nil
	}
	out.whole = nil
	for some := range slices.Chunk(rows, 100) {
		keys := make(bigtable.RowList, len(some))
		for i, row := range some {
			keys[i] = row.Key()
		}
		err := c.t.Read(ctx, bt.Scan{Rows: keys, Long: true}, func(row *bt.Row) bool {
			out.whole = append(out.whole, row.Clone())
			return true
		})
		if err != nil {
			return out, more, err
		}
	}
	return out, more, nil
}

// since returns the time from which the pass copies; zero for all.
func (c *copying) since() time.Time {
	if c.state.Since == nil {
		return time.Time{}
	}
	return c.state.Since.Add(-c.opts.Overlap).Truncate(time.Millisecond)
}

// writeRows writes the points of rows, and returns what it did.
func (c *copying) writeRows(ctx context.Context, rows []*bt.Row) (counts, error) {
	n := counts{rows: int64(len(rows)), skipped: map[string]int64{}}
	wrong := func(u *Unfit) error {
		if !c.m.skips(u.Reason) {
			return u
		}
		n.skipped[u.Reason]++
		return nil
	}
	var oldest int64 = -1 // in units
	if at := c.since(); !at.IsZero() && c.m.cells == cellUnknown {
		if units, ok := c.to.precision.AtOrAfter(at); ok {
			oldest = units
		}
	}
	var list []point
	bytes := 0
	flush := func() error {
		if err := c.pace.wait(ctx, len(list)); err != nil {
			return err
		}
		n.points += int64(len(list))
		err := c.to.write(ctx, list, false, func(_ int, u *Unfit) error {
			n.points--
			return wrong(u)
		})
		list, bytes = list[:0], 0
		return err
	}
	for _, row := range rows {
		err := c.m.points(row, c.to.precision, func(p point) error {
			if p.units < oldest {
				return nil
			}
			list = append(list, p)
			if bytes += len(p.payload); len(list) < chunkRows && bytes < chunkBytes {
				return nil
			}
			return flush()
		}, wrong)
		if err != nil {
			return n, err
		}
	}
	return n, flush()
}

// saveEvery is how often a copy saves its state.
const saveEvery = time.Second

// advance records the progress of a range.
func (c *copying) advance(i int, r Range, n counts) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Ranges[i] = r
	c.state.add(n)
	now := time.Now()
	if c.opts.Save == nil || now.Sub(c.saved) < saveEvery {
		return nil
	}
	c.saved = now
	return c.opts.Save(c.state.clone())
}

// pace bounds the rate of writes.
type pace struct {
	rate int
	mu   sync.Mutex
	next time.Time
}

// wait waits until n more points may be written.
func (p *pace) wait(ctx context.Context, n int) error {
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	d := p.next.Sub(now)
	p.next = p.next.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	p.mu.Unlock()
	return ctxerr.Wait(ctx, d)
}
