package delivery

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
)

// The kinds of descriptions. Records refer to descriptions by number.
const (
	pointKind = "point"
	eventKind = "event"
	// Descriptions of records from before records had a generation:
	plainPointKind = "dataset"
	plainEventKind = "rollup"
)

// maxNumbers bounds how many schemas have the numbers of their descriptions cached.
const maxNumbers = 1000

// Records encodes points and events as records of a journal, and decodes them. The zero value is ready for
// journal.Open.
type Records struct {
	descriptions *journal.Descriptions

	mu            sync.Mutex
	datasets      map[uint64]*dataset.Dataset // by number
	rollups       map[uint64]*Rollup          // by number
	plain         map[uint64]bool             // numbers of descriptions whose records have no generation
	pointNumbers  map[*dataset.Dataset]uint64 // of the program's datasets
	eventNumbers  map[string]uint64           // by the text of the description
	programRollup map[*catalog.Rollup]*Rollup // of the program's rollups
}

// Load implements journal.Codec.
func (r *Records) Load(d *journal.Descriptions) error {
	r.descriptions = d
	r.datasets, r.rollups, r.plain = map[uint64]*dataset.Dataset{}, map[uint64]*Rollup{}, map[uint64]bool{}
	r.pointNumbers, r.eventNumbers = map[*dataset.Dataset]uint64{}, map[string]uint64{}
	r.programRollup = map[*catalog.Rollup]*Rollup{}
	for one := range d.All() {
		var err error
		switch one.Kind {
		case pointKind, plainPointKind:
			r.datasets[one.Number], err = parseDataset(one.Text)
		case eventKind, plainEventKind:
			r.rollups[one.Number], err = parseRollup(one.Text)
		}
		if err != nil {
			return fmt.Errorf("tsdb: the journal's %s: %w", one.Name(), err)
		}
		r.plain[one.Number] = one.Kind == plainPointKind || one.Kind == plainEventKind
	}
	return nil
}

// Encode implements journal.Codec.
func (r *Records) Encode(ctx context.Context, e *journal.Entry) ([]byte, error) {
	p := Of(&e.Item)
	if p.event != nil {
		number, err := r.numberOfRollup(ctx, p.event.to)
		if err != nil {
			return nil, err
		}
		return appendEventRecord(make([]byte, 0, len(p.Item.Key)+42), number, p.Taken, p.Item.Tenant, p.event), nil
	}
	number, err := r.numberOfDataset(ctx, p.Write.D)
	if err != nil {
		return nil, err
	}
	w := &p.Write
	return appendRecord(make([]byte, 0, len(w.Key)+len(w.Payload)+42), number, p.Taken, p.Item.Tenant, w.Entity.Path(), w.Units, w.ID, w.Payload), nil
}

// Decode implements journal.Codec.
func (r *Records) Decode(record []byte) (*journal.Entry, error) {
	p, err := r.parse(record)
	if err != nil {
		return nil, err
	}
	return &p.Entry, nil
}

func (r *Records) parse(src []byte) (p *Pending, err error) {
	in := recordReader{src: src}
	number := in.number()
	r.mu.Lock()
	d, to, plain := r.datasets[number], r.rollups[number], r.plain[number]
	r.mu.Unlock()
	g := tenancy.FirstGeneration
	if !plain {
		g = tenancy.Generation(in.number())
	}
	switch {
	case in.bad:
		return nil, invalid.New(dataset.ErrInvalid, "journal record", fmt.Sprintf("%d bytes", len(src)), "a point or an event, which this is not")
	case to != nil:
		p, err = parseEventRecord(in, to)
	case d != nil:
		p, err = parseRecord(in, d)
	default:
		return nil, invalid.New(dataset.ErrInvalid, "journal record", fmt.Sprintf("dataset number %d", number), "a number that the journal describes")
	}
	if err == nil {
		p.Taken = g
	}
	return p, err
}

// numberOfDataset returns the number of a dataset's description, and writes the description if it does not exist. It
// refuses a description that could not be decoded again, because no program could open a journal with it.
func (r *Records) numberOfDataset(ctx context.Context, d *dataset.Dataset) (uint64, error) {
	r.mu.Lock()
	number, ok := r.pointNumbers[d]
	r.mu.Unlock()
	if ok {
		return number, nil
	}
	text, err := json.Marshal(d.ToCatalog())
	if err != nil {
		return 0, err
	}
	if _, err := parseDataset(text); err != nil {
		return 0, err
	}
	if number, err = r.descriptions.Number(ctx, pointKind, text); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	remember(r.pointNumbers, d, number)
	if r.datasets[number] == nil {
		r.datasets[number] = d
	}
	return number, nil
}

// numberOfRollup is numberOfDataset for a rollup.
func (r *Records) numberOfRollup(ctx context.Context, to *Rollup) (uint64, error) {
	r.mu.Lock()
	number, ok := r.eventNumbers[to.text]
	r.mu.Unlock()
	if ok {
		return number, nil
	}
	number, err := r.descriptions.Number(ctx, eventKind, []byte(to.text))
	if err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	remember(r.eventNumbers, to.text, number)
	if r.rollups[number] == nil {
		r.rollups[number] = to
	}
	return number, nil
}

// Rollup returns a rollup to which events are added. It caches one for each rollup that the program describes.
func (r *Records) Rollup(e RollupDescription, rollup *catalog.Rollup) (*Rollup, error) {
	r.mu.Lock()
	to := r.programRollup[rollup]
	r.mu.Unlock()
	if to != nil && to.Dataset == e.Dataset && to.Salts == e.Salts {
		return to, nil
	}
	e.Rollup = *rollup
	to, err := newRollup(e)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	remember(r.programRollup, rollup, to)
	return to, nil
}

// remember sets a value in a bounded map, because a program may define new schemas again and again.
func remember[K comparable, V any](m map[K]V, key K, value V) {
	if len(m) >= maxNumbers {
		clear(m)
	}
	m[key] = value
}

func parseDataset(text []byte) (*dataset.Dataset, error) {
	var e catalog.Dataset
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, err
	}
	return dataset.FromCatalog(e)
}

// A record holds a point in this form: the number of its dataset's description in the journal, its generation, the
// tenant and the entity's path, each after its length, the time in units, in a dataset with Identity the ID after its
// length, and the payload up to the end. Numbers are varints of protobuf. The row follows from the description, so a
// program can deliver a journal without knowing the schema. Records that refer to an older kind of description have no
// generation, and count as written before all erasures.

// appendRecord appends the record of a point to dst. The ID is empty in a dataset without Identity.
func appendRecord(dst []byte, number uint64, g tenancy.Generation, tenant, path string, units int64, id string, payload []byte) []byte {
	dst = appendHead(dst, number, g, tenant, path)
	dst = binary.AppendUvarint(dst, uint64(units))
	if id != "" {
		dst = appendText(dst, id)
	}
	return append(dst, payload...)
}

// appendHead appends what the records of points and events begin with.
func appendHead(dst []byte, number uint64, g tenancy.Generation, tenant, path string) []byte {
	dst = binary.AppendUvarint(dst, number)
	dst = binary.AppendUvarint(dst, uint64(g))
	return appendText(appendText(dst, tenant), path)
}

func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// parseRecord decodes the record of a point of a dataset: what follows the generation. The payload shares the
// record's memory.
func parseRecord(r recordReader, d *dataset.Dataset) (*Pending, error) {
	name, path, units := r.text(), r.text(), r.number()
	if r.bad {
		return nil, invalid.New(dataset.ErrInvalid, "journal record", fmt.Sprintf("%d bytes", len(r.src)), "a point, which this is not")
	}
	id, err := tenant.Parse(name)
	if err != nil {
		return nil, err
	}
	space, err := d.Space(id)
	if err != nil {
		return nil, err
	}
	space = d.BesideRollups(space)
	identity := ""
	if d.Identity {
		identity = r.text()
	}
	if err := space.CheckID(identity); err != nil {
		return nil, err
	}
	if err := space.CheckPath(path); err != nil {
		return nil, err
	}
	if units > uint64(d.Precision.Max()) {
		return nil, invalid.New(dataset.ErrInvalid, "time", fmt.Sprint(units), fmt.Sprintf("at most %d %s", d.Precision.Max(), d.Precision))
	}
	w := points.NewWrite(d, space, space.Heads(), path, int64(units), identity, r.src)
	if len(r.src) > dataset.MaxPayload {
		return nil, invalid.New(dataset.ErrInvalid, "payload", fmt.Sprintf("%d bytes", len(r.src)), fmt.Sprintf("at most %d bytes", dataset.MaxPayload))
	}
	if _, _, ok := space.Split(w.Key); !ok {
		return nil, invalid.New(dataset.ErrInvalid, "entity", invalid.Quote(path), "an escaped path")
	}
	return NewPoint(id, w, nil), nil
}

type recordReader struct {
	src []byte
	bad bool
}

func (r *recordReader) number() uint64 {
	v, n := binary.Uvarint(r.src)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.src = r.src[n:]
	return v
}

func (r *recordReader) text() string {
	n := r.number()
	if n > uint64(len(r.src)) {
		r.bad = true
		return ""
	}
	s := string(r.src[:n])
	r.src = r.src[n:]
	return s
}
