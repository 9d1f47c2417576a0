package delivery

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
)

// Rollup describes a rollup, without its Go type, to which a journal adds events.
type Rollup struct {
	RollupDescription
	shape *rollupadd.Shape
	text  string // the description as a journal stores it
}

// RollupDescription is the form in which a journal stores a Rollup.
type RollupDescription struct {
	Dataset string         `json:"dataset"`
	Key     []string       `json:"key"`
	Salts   int            `json:"salts"`
	Rollup  catalog.Rollup `json:"rollup"`
}

// event is an event that is to be added to a row of a rollup.
type event struct {
	to    *Rollup
	path  string
	event rollupadd.Event
	// rejected is the outcome of this event and those sent with it, until the outcome is on disk.
	rejected *bt.Outcome
}

// parseRollup decodes a description from a journal.
func parseRollup(text []byte) (*Rollup, error) {
	var e RollupDescription
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, err
	}
	return newRollup(e)
}

func newRollup(e RollupDescription) (*Rollup, error) {
	if err := errors.Join(rowkey.CheckDataset(e.Dataset), rowkey.CheckFields(e.Key, e.Salts), rowkey.CheckDataset(e.Rollup.Name)); err != nil {
		return nil, err
	}
	if e.Rollup.Kind != catalog.ByStream {
		return nil, invalid.New(dataset.ErrInvalid, "kind", invalid.Quote(e.Rollup.Kind), catalog.ByStream)
	}
	shape, err := rollupadd.NewShape(&e.Rollup)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return &Rollup{RollupDescription: e, shape: shape, text: string(text)}, nil
}

// NewEvent returns an event for a writer.
func NewEvent(id tenant.ID, to *Rollup, path string, e rollupadd.Event, caller journal.Caller) (*Pending, error) {
	if err := to.shape.Check(e); err != nil {
		return nil, err
	}
	rows, err := rowkey.NewSpace(id, to.Dataset, to.Key, to.Salts)
	if err != nil {
		return nil, err
	}
	kind := rowkey.RollupKind + to.Rollup.Name
	if err := rows.WithSiblings(kind).CheckPath(path); err != nil {
		return nil, err
	}
	space := rows.Kind(kind)
	key := string(space.AppendPoint(nil, path, to.shape.Row(e.Bucket)))
	if _, _, ok := space.Split(key); !ok {
		return nil, invalid.New(dataset.ErrInvalid, "entity", invalid.Quote(path), "an escaped path")
	}
	p := &Pending{event: &event{to: to, path: path, event: e}}
	p.enter(caller, buffer.Item{
		Tenant:    id.String(),
		Key:       key,
		Bytes:     len(key) + len(path) + 16*len(e.Numbers) + overhead,
		Mutations: int32(to.shape.Cells() + 1),
		Alone:     true,
		Merge:     true,
	})
	return p, nil
}

// The record of an event is like that of a point up to the path, but with the number of the rollup's description
// instead of the dataset's. Then comes the event, as package rollupadd encodes it.

func appendEventRecord(dst []byte, number uint64, g tenancy.Generation, tenant string, ev *event) []byte {
	dst = appendHead(dst, number, g, tenant, ev.path)
	return rollupadd.AppendEvent(dst, ev.event)
}

// parseEventRecord decodes the record of an event of a rollup: what follows the generation.
func parseEventRecord(r recordReader, to *Rollup) (*Pending, error) {
	name, path := r.text(), r.text()
	if r.bad {
		return nil, invalid.New(dataset.ErrInvalid, "journal record", fmt.Sprintf("%d bytes", len(r.src)), "an event, which this is not")
	}
	id, err := tenant.Parse(name)
	if err != nil {
		return nil, err
	}
	e, err := to.shape.ParseEvent(r.src)
	if err != nil {
		return nil, err
	}
	return NewEvent(id, to, path, e, nil)
}
