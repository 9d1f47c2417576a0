package tsdb

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
)

// added is a rollup to which events are added through a journal, without its Go type.
type added struct {
	addedEntry
	shape *rollupadd.Shape
	text  string // the entry as a journal holds it
}

// addedEntry is what a journal says of it.
type addedEntry struct {
	Dataset string         `json:"dataset"`
	Key     []string       `json:"key"`
	Salts   int            `json:"salts"`
	Rollup  catalog.Rollup `json:"rollup"`
}

// event is one event on its way to a row of a rollup.
type event struct {
	to    *added
	path  string
	event rollupadd.Event
	done  bool // it is in its row, though others that went with it were refused
	// refused is how it ended, and those that it brought with it, before that was on disk.
	refused *bt.Outcome
}

// readAdded reads the description of a rollup, which comes from a file.
func readAdded(text []byte) (*added, error) {
	var e addedEntry
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, err
	}
	return describedAdded(e)
}

func describedAdded(e addedEntry) (*added, error) {
	if err := errors.Join(rowkey.CheckDataset(e.Dataset), rowkey.CheckFields(e.Key, e.Salts), rowkey.CheckDataset(e.Rollup.Name)); err != nil {
		return nil, err
	}
	if e.Rollup.Kind != catalog.ByStream {
		return nil, invalid.New(ErrInvalid, "kind", invalid.Quote(e.Rollup.Kind), catalog.ByStream)
	}
	shape, err := rollupadd.NewShape(&e.Rollup)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return &added{addedEntry: e, shape: shape, text: string(text)}, nil
}

// newEvent returns an event for the writer's buffer.
func newEvent(id tenant.ID, to *added, path string, e rollupadd.Event, told func(Outcome)) (*pending, error) {
	if err := to.shape.Check(e); err != nil {
		return nil, err
	}
	points, err := rowkey.NewSpace(id, to.Dataset, to.Key, to.Salts)
	if err != nil {
		return nil, err
	}
	kind := rowkey.RollupKind + to.Rollup.Name
	if err := points.Beside(kind).CheckPath(path); err != nil {
		return nil, err
	}
	space := points.Kind(kind)
	key := string(space.AppendPoint(nil, path, to.shape.Row(e.Bucket)))
	if _, _, ok := space.Split(key); !ok {
		return nil, invalid.New(ErrInvalid, "entity", invalid.Quote(path), "an escaped path")
	}
	p := &pending{told: told, event: &event{to: to, path: path, event: e}}
	p.item = buffer.Item{
		Tenant:    id.String(),
		Key:       key,
		Bytes:     len(key) + len(path) + 16*len(e.Numbers) + overhead,
		Mutations: int32(to.shape.Cells() + 1),
		Alone:     true,
		Merge:     true,
		Work:      p,
	}
	if told != nil {
		p.item.Done = tell
	}
	return p, nil
}

// The record of an event is that of a point up to the path: the number of the rollup's description in the place of the
// dataset's. The event follows, as package addition writes it.

func appendEventRecord(dst []byte, number uint64, g tenancy.Generation, tenant string, ev *event) []byte {
	dst = binary.AppendUvarint(dst, number)
	dst = binary.AppendUvarint(dst, uint64(g))
	dst = binary.AppendUvarint(dst, uint64(len(tenant)))
	dst = append(dst, tenant...)
	dst = binary.AppendUvarint(dst, uint64(len(ev.path)))
	dst = append(dst, ev.path...)
	return rollupadd.AppendEvent(dst, ev.event)
}

// parseEventRecord reads the record of an event of a rollup, behind the generation.
func parseEventRecord(r recordReader, to *added) (*pending, error) {
	name, path := r.text(), r.text()
	if r.bad {
		return nil, invalid.New(ErrInvalid, "journal record", fmt.Sprintf("%d bytes", len(r.src)), "an event, which this is not")
	}
	id, err := tenant.Parse(name)
	if err != nil {
		return nil, err
	}
	e, err := to.shape.ParseEvent(r.src)
	if err != nil {
		return nil, err
	}
	return newEvent(id, to, path, e, nil)
}

// parse reads a record of the journal.
func (j *journal) parse(src []byte) (p *pending, err error) {
	r := recordReader{src: src}
	number := r.number()
	j.mu.Lock()
	d, to, plain := j.datasets[number], j.rollups[number], j.plain[number]
	j.mu.Unlock()
	g := tenancy.FirstGeneration
	if !plain {
		g = tenancy.Generation(r.number())
	}
	switch {
	case r.bad:
		return nil, invalid.New(ErrInvalid, "journal record", fmt.Sprintf("%d bytes", len(src)), "a point or an event, which this is not")
	case to != nil:
		p, err = parseEventRecord(r, to)
	case d != nil:
		p, err = parseRecord(r, d)
	default:
		return nil, invalid.New(ErrInvalid, "journal record", fmt.Sprintf("dataset number %d", number), "a number that the journal describes")
	}
	if err == nil {
		p.generation = g
	}
	return p, err
}
