package inbound

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Batch gathers points of one tenant, and merges those of one series and time before they are stored. An O says where a
// point came from, such as a line or a message; its text appears in errors. The zero Batch is ready to use, by one
// goroutine. Use another one after Store.
type Batch[O any] struct {
	groups  []*group[O]
	find    map[kind]*group[O]
	added   int
	bytes   int
	encoded []byte // the last record, to see whether it can be stored
}

// A batch is full when it has this many records or bytes, so that memory does not grow with the input.
const (
	batchRecords = 5000
	batchBytes   = 4 << 20
)

// maxPoint is the most bytes of a point that merges, as tsdb.SchemaOptions.Merge says.
const maxPoint = 8 << 10

// storeWidth is the number of datasets that are written in parallel.
const storeWidth = 4

// Full reports whether the batch should be stored before more is added.
func (b *Batch[O]) Full() bool { return b.added >= batchRecords || b.bytes >= batchBytes }

// Points returns how many points the batch has. Records that were merged are one.
func (b *Batch[O]) Points() (n int) {
	for _, g := range b.groups {
		n += len(g.points)
	}
	return n
}

// Payload returns how many bytes the payloads of the points have, as a tenant's rate of bytes counts them.
func (b *Batch[O]) Payload() (n int64) {
	for _, g := range b.groups {
		for _, size := range g.sizes {
			n += int64(size)
		}
	}
	return n
}

// group is a batch's points of one dataset.
type group[O any] struct {
	kind
	points  []tsdb.Point[codec.Record]
	origins [][]O // of each point
	sizes   []int // of each payload
	index   map[place]int
}

// kind is what the points of a group have in common.
type kind struct {
	dataset *Dataset
	change  *tsdb.OnChange[codec.Record]
}

// place is where a point is stored: two records with the same place are one point.
type place struct {
	entity  tsdb.Entity
	seconds int64 // since 1970
	nanos   int
}

func placeOf(p Point) place { return place{p.Entity, p.Time.Unix(), p.Time.Nanosecond()} }

// Add adds the point of a record of n bytes. It refuses a record that cannot be stored, alone or with the earlier ones
// of the same place, so that these are stored: one that is too large, or whose tags differ from theirs. The store
// refuses such records of different batches. Add reports whether the record changed a field of an earlier one. In a
// dataset that does not merge each record is a point of its own; the last one of a place is stored.
func (b *Batch[O]) Add(p Point, origin O, n int) (replaced bool, err error) {
	if err := b.check(p.Record); err != nil {
		return false, err
	}
	g := b.group(kind{p.Dataset, p.change})
	if !p.Dataset.merge {
		b.append(g, p, origin, n)
		return false, nil
	}
	at := placeOf(p)
	i, ok := g.index[at]
	if !ok {
		g.index[at] = len(g.points)
		b.append(g, p, origin, n)
		return false, nil
	}
	there := &g.points[i]
	for name, v := range p.Record.All() {
		old, ok := there.Value.Lookup(name)
		if !ok || old == v {
			continue
		}
		if tag, isTag := strings.CutPrefix(name, TagPrefix); isTag {
			return false, &Error{ReasonSeries, fmt.Errorf("its tag %q is %s, and %s on %v with the same key and time: "+
				"name the tag in -key to keep the two series apart", tag, v, old, g.origins[i][0])}
		}
		replaced = true
	}
	merged := there.Value.Merge(p.Record)
	if err := b.check(merged); err != nil {
		return false, &Error{ReasonValue, fmt.Errorf("together with what %v and others have for its key and time: %w", g.origins[i][0], err)}
	}
	there.Value, g.sizes[i] = merged, len(b.encoded)
	g.origins[i] = append(g.origins[i], origin)
	b.added++
	b.bytes += n
	return replaced, nil
}

// append adds the point of a record of n bytes, which was checked just before, as a point of its own.
func (b *Batch[O]) append(g *group[O], p Point, origin O, n int) {
	g.points = append(g.points, tsdb.Point[codec.Record]{Entity: p.Entity, Time: p.Time, Value: p.Record})
	g.origins = append(g.origins, []O{origin})
	g.sizes = append(g.sizes, len(b.encoded))
	b.added++
	b.bytes += n
}

// check returns an error if a record cannot be stored.
func (b *Batch[O]) check(r codec.Record) (err error) {
	b.encoded, err = codec.Append(codec.Records(), b.encoded[:0], r)
	if err == nil && len(b.encoded) > maxPoint {
		err = fmt.Errorf("the point has %d bytes; want at most %d bytes", len(b.encoded), maxPoint)
	}
	if err != nil {
		return &Error{ReasonValue, err}
	}
	return nil
}

func (b *Batch[O]) group(k kind) *group[O] {
	g := b.find[k]
	if g == nil {
		g = &group[O]{kind: k, index: map[place]int{}}
		if b.find == nil {
			b.find = map[kind]*group[O]{}
		}
		b.find[k] = g
		b.groups = append(b.groups, g)
	}
	return g
}

// Store writes the batch for a tenant, waits for the outcomes, and calls each with the outcome of each point and the
// origins of the records that it was merged from. The error is nil if each point is stored, or can never be stored as
// it is: see Sink.
func (b *Batch[O]) Store(ctx context.Context, s Sink, id tenant.ID, each func([]O, tsdb.Outcome)) error {
	outcomes := make([][]tsdb.Outcome, len(b.groups))
	var stores errgroup.Group // the writer makes batches of parallel writes
	stores.SetLimit(storeWidth)
	for n, g := range b.groups {
		stores.Go(func() error {
			outcomes[n], _ = s.via(id, g.dataset, g.change).EnqueueMany(ctx, g.points) // each outcome has its error
			return nil
		})
	}
	_ = stores.Wait()
	var failed error
	for n, g := range b.groups {
		for i, out := range outcomes[n] {
			out = classify(out)
			each(g.origins[i], out)
			if failed == nil && !IsFinal(out.Err) {
				failed = fmt.Errorf("%s of %s at %v is %v: %w", g.dataset.name, g.points[i].Entity, instant.Text(g.points[i].Time.UTC()), out.State, out.Err)
			}
		}
	}
	return failed
}
