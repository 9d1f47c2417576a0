package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// WriterFigures are the contents and counters of a writer.
type WriterFigures struct {
	Points, Bytes                 int64 // in the buffer
	CapacityPoints, CapacityBytes int64
	Oldest                        time.Duration
	InFlight, Slots               int64
	RateLimit                     int64 // bytes a second; 0 means none
	Down                          bool

	Stored, Rejected, Unknown, Unchanged, Requests, Retries int64
	Blocked                                                 time.Duration

	Journal                                         bool
	JournalPoints, JournalBytes, JournalLimit, Dead int64
}

// ended returns the figures that remain when a writer is closed.
func (f WriterFigures) ended() WriterFigures {
	return WriterFigures{Stored: f.Stored, Rejected: f.Rejected, Unknown: f.Unknown, Unchanged: f.Unchanged, Requests: f.Requests, Retries: f.Retries, Blocked: f.Blocked}
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
	f.RateLimit += g.RateLimit
	f.Down = f.Down || g.Down
	f.Stored += g.Stored
	f.Rejected += g.Rejected
	f.Unknown += g.Unknown
	f.Unchanged += g.Unchanged
	f.Requests += g.Requests
	f.Retries += g.Retries
	f.Blocked += g.Blocked
	f.Journal = f.Journal || g.Journal
	f.JournalPoints += g.JournalPoints
	f.JournalBytes += g.JournalBytes
	f.JournalLimit += g.JournalLimit
	f.Dead += g.Dead
}

// CacheFigures are the contents and counters of the last-value cache.
type CacheFigures struct{ Hits, Misses, Shared, Entries, Bytes int64 }

// writers holds a store's writers. Their figures are reported as one.
type writers struct {
	mu   sync.Mutex
	any  bool // a writer was opened at some time
	next int
	open map[int]source
	past WriterFigures // of closed writers that hold nothing any more
}

// source returns the figures of one writer.
type source struct {
	read   func() WriterFigures
	closed bool // it holds points that Close did not wait for
}

// Writer reports on one writer. A nil *Writer reports nothing.
type Writer struct {
	probe *Probe
	id    int
}

// NewWriter returns a Writer that reports nothing until Open.
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

// Close removes the writer; call it once. Points that it gives up afterwards are still counted.
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

// figures returns the sum of all writers, or false if there never was one.
func (ws *writers) figures() (WriterFigures, bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.sum(), ws.any
}

// sum adds up the figures, and drops closed writers that hold nothing any more.
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
	Wait   time.Duration // of the oldest point, since it was put
	Reason string        // why it is sent now
}

// Sends reports a batch.
func (w *Writer) Sends(ctx context.Context, b Batch) {
	if w == nil {
		return
	}
	p := w.probe
	if p.batchSize.Enabled(ctx) || p.queueWait.Enabled(ctx) {
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

// Down reports that the service counts as unreachable because of err, or, if err is nil, that it is back after that
// time.
func (w *Writer) Down(err error, after time.Duration) {
	switch {
	case w == nil || w.probe.logs == nil:
	case err == nil:
		w.probe.logs.logRare(slog.LevelInfo, "the service takes points again", slog.Duration("after", after.Round(time.Millisecond)))
	default:
		w.probe.logs.logRare(slog.LevelWarn, "the service takes no points; the writer keeps them and asks one request at a time", w.probe.cause(err)...)
	}
}

// Lost reports a point that a writer accepted and that was not stored.
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

// Journal reports that a writer's journal has failed and stopped.
func (w *Writer) Journal(err error) {
	if w != nil && w.probe.logs != nil {
		w.probe.logs.logRare(slog.LevelError, "the journal does nothing any more", w.probe.cause(err)...)
	}
}

// DroppedCommit reports that a writer's journal was opened without its last commit. It reports nothing for 0.
func (w *Writer) DroppedCommit(commit uint64) {
	if w != nil && commit != 0 {
		w.probe.logs.logRare(slog.LevelWarn, "the last commit of the journal was incomplete and was dropped", slog.Uint64("commit", commit))
	}
}

// cause returns the log attributes of an error.
func (p *Probe) cause(err error) []slog.Attr {
	attrs := []slog.Attr{slog.String("error_type", p.failureOf(err).kind)}
	if p.conf.Details {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	return attrs
}

// Took counts a point that a tenant has passed to a writer.
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
