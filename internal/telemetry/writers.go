package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// WriterFigures are what a writer holds and has done.
type WriterFigures struct {
	Points, Bytes                 int64 // in the buffer
	CapacityPoints, CapacityBytes int64
	Oldest                        time.Duration
	InFlight, Slots               int64
	Down                          bool

	Stored, Rejected, Unknown, Requests, Retries int64
	Blocked                                      time.Duration

	Journal                                         bool
	JournalPoints, JournalBytes, JournalLimit, Dead int64
}

// ended are the figures that stay when a writer is closed.
func (f WriterFigures) ended() WriterFigures {
	return WriterFigures{Stored: f.Stored, Rejected: f.Rejected, Unknown: f.Unknown, Requests: f.Requests, Retries: f.Retries, Blocked: f.Blocked}
}

// add adds the figures of another writer.
func (f *WriterFigures) add(g WriterFigures) {
	f.Points += g.Points
	f.Bytes += g.Bytes
	f.CapacityPoints += g.CapacityPoints
	f.CapacityBytes += g.CapacityBytes
	f.Oldest = max(f.Oldest, g.Oldest)
	f.InFlight += g.InFlight
	f.Slots += g.Slots
	f.Down = f.Down || g.Down
	f.Stored += g.Stored
	f.Rejected += g.Rejected
	f.Unknown += g.Unknown
	f.Requests += g.Requests
	f.Retries += g.Retries
	f.Blocked += g.Blocked
	f.Journal = f.Journal || g.Journal
	f.JournalPoints += g.JournalPoints
	f.JournalBytes += g.JournalBytes
	f.JournalLimit += g.JournalLimit
	f.Dead += g.Dead
}

// CacheFigures are what the last-value cache holds and has done.
type CacheFigures struct{ Hits, Misses, Shared, Entries, Bytes int64 }

// writers are those of a store, whose figures are told as one.
type writers struct {
	mu   sync.Mutex
	any  bool // there was one
	next int
	open map[int]source
	past WriterFigures // of those that are closed, and hold nothing
}

// source is where the figures of a writer are read.
type source struct {
	read   func() WriterFigures
	closed bool // it holds points that Close did not wait for
}

// Writer is one writer. Nil is one that nobody watches.
type Writer struct {
	probe *Probe
	id    int
}

// NewWriter returns one that tells nothing yet.
func (p *Probe) NewWriter() *Writer {
	if p == nil {
		return nil
	}
	return &Writer{probe: p}
}

// Open adds the writer to those of the store. Read returns its figures.
func (w *Writer) Open(read func() WriterFigures) {
	if w == nil {
		return
	}
	ws := &w.probe.writers
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.open == nil {
		ws.open = map[int]source{}
	}
	ws.any = true
	ws.next++
	ws.open[ws.next] = source{read: read}
	w.id = ws.next
}

// Close takes the writer out, once. The points that it gives up meanwhile are counted still.
func (w *Writer) Close() {
	if w == nil {
		return
	}
	ws := &w.probe.writers
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if s, ok := ws.open[w.id]; ok {
		s.closed = true
		ws.open[w.id] = s
		ws.sum()
	}
}

// figures returns those of all writers together; false where there never was one.
func (ws *writers) figures() (WriterFigures, bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.sum(), ws.any
}

// sum adds up the figures, and forgets the writers that are closed and hold nothing any more.
func (ws *writers) sum() WriterFigures {
	var now WriterFigures
	for id, s := range ws.open {
		f := s.read()
		switch {
		case !s.closed:
			now.add(f)
		case f.Points == 0:
			ws.past.add(f.ended())
			delete(ws.open, id)
		default:
			now.add(f.ended())
		}
	}
	now.add(ws.past)
	return now
}

// Batch is a request that a writer is about to make.
type Batch struct {
	Points int
	Wait   time.Duration // of the oldest of them, since it was put
	Reason string        // why it goes now
}

// Sends tells of a batch.
func (w *Writer) Sends(ctx context.Context, b Batch) {
	if w == nil {
		return
	}
	p := w.probe
	if p.batchSize.Enabled(ctx) {
		opts := p.reasonOf(b.Reason)
		p.batchSize.Record(ctx, int64(b.Points), opts...)
		p.queueWait.Record(ctx, b.Wait.Seconds(), opts...)
	}
}

func (p *Probe) reasonOf(reason string) []metric.RecordOption {
	if opts, ok := (*p.reasons.Load())[reason]; ok {
		return opts
	}
	opts := recordOptions(append(p.base[:len(p.base):len(p.base)], attribute.String(attrReason, reason)))
	p.mu.Lock()
	defer p.mu.Unlock()
	add(&p.reasons, reason, opts)
	return opts
}

// Down tells that the service is taken for unreachable, for the reason err, or with nil that it is back after that time.
func (w *Writer) Down(err error, after time.Duration) {
	switch {
	case w == nil || w.probe.logs == nil:
	case err == nil:
		w.probe.logs.say(slog.LevelInfo, "the service takes points again", slog.Duration("after", after.Round(time.Millisecond)))
	default:
		w.probe.logs.say(slog.LevelWarn, "the service takes no points; the writer keeps them and asks one request at a time", w.probe.cause(err)...)
	}
}

// Lost tells of a point that a writer took and that was not stored.
func (w *Writer) Lost(dataset, tenant string, err error) {
	if w == nil || w.probe.logs == nil {
		return
	}
	p := w.probe
	attrs := []slog.Attr{slog.String("dataset", dataset)}
	if p.conf.Details {
		attrs = append(attrs, slog.String("tenant", tenant), slog.String("error", err.Error()))
	}
	p.logs.note(context.Background(), slog.LevelError, fault{message: "point not stored", operation: Deliver.String(), kind: p.failureOf(err).kind}, attrs...)
}

// Journal tells that a writer's journal does nothing any more.
func (w *Writer) Journal(err error) {
	if w != nil && w.probe.logs != nil {
		w.probe.logs.say(slog.LevelError, "the journal does nothing any more", w.probe.cause(err)...)
	}
}

// cause is an error in a log.
func (p *Probe) cause(err error) []slog.Attr {
	attrs := []slog.Attr{slog.String("error_type", p.failureOf(err).kind)}
	if p.conf.Details {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	return attrs
}

// Took counts a point that a tenant has handed to a writer.
func (w *Writer) Took(tenant string, bytes int) {
	if w == nil {
		return
	}
	w.probe.accepted.Add(1)
	if w.probe.conf.Tenants <= 0 {
		return
	}
	t, _ := w.probe.tallyOf(tenant)
	t.points.Add(1)
	t.bytes.Add(int64(bytes))
}
