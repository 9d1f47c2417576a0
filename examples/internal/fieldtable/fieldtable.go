// Package fieldtable is one table of the values that fields of payloads have: whole numbers around 2^53, 2^63 and 2^64,
// floats, text with and without a number, truths, null, nothing, the types of protobuf; in each form of payloads that
// the SDK reads, plain and compressed. The tests of the programs read it, each in its own way, so that all programs
// agree on what a field is, and on all of its digits.
package fieldtable

import (
	"errors"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Cell is a field of a stored payload, and what a program has to read there.
type Cell struct {
	Dataset string
	Time    time.Time
	Field   string // names joined by dots; empty for the payload itself
	Want
}

// String returns where the cell is.
func (c Cell) String() string {
	return c.Dataset + " field " + c.Field + " at " + c.Time.Format(time.TimeOnly)
}

// Want is what a field is.
type Want struct {
	// Value is the field itself. The zero Value means that there is no field.
	Value codec.Value
	// Number is the number of the field for a user who names it as a number. The zero Value means that it has none.
	Number codec.Value
	// State is the field as the name of a state. Empty means that it has none, or that its text is empty.
	State string
}

// Key is the key field of all datasets of the table, and Entity the value of the only entity in each. Tenant owns all
// points.
const (
	Key    = "id"
	Entity = "all"
)

// The points of a dataset are an hour apart. The first one is at Start, and End is after all.
var (
	Tenant = tenant.MustParse("acme")
	Start  = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	End    = Start.Add(72 * time.Hour)
)

// payload is one point.
type payload struct {
	dataset, tag string
	data         []byte
	fields       []Cell
}

// Store stores the table, and returns its cells in the order of datasets and times.
func Store(t testing.TB, store *tsdb.Store) (cells []Cell) {
	t.Helper()
	ctx := tenant.NewContext(t.Context(), Tenant)
	all := payloads(t)
	for _, packed := range []bool{false, true} {
		schemas, points := map[string]*tsdb.Schema[[]byte]{}, map[string][]tsdb.Point[[]byte]{}
		for _, p := range all {
			bytes := codec.Codec[[]byte](raw(p.tag))
			if packed {
				p.dataset, bytes = p.dataset+"_zstd", zstd.Wrap(bytes, zstd.Options{})
			}
			if schemas[p.dataset] == nil {
				schemas[p.dataset] = tsdb.MustDefine(p.dataset, tsdb.Key(Key), bytes, tsdb.SchemaOptions{})
			}
			at := Start.Add(time.Duration(len(points[p.dataset])) * time.Hour)
			points[p.dataset] = append(points[p.dataset], tsdb.Point[[]byte]{Entity: tsdb.NewEntity(Entity), Time: at, Value: p.data})
			for _, c := range p.fields {
				c.Dataset, c.Time = p.dataset, at
				cells = append(cells, c)
			}
		}
		for name, s := range schemas {
			if err := store.Ensure(ctx, s); err != nil {
				t.Fatal(err)
			}
			if _, err := s.For(store, Tenant).PutMany(ctx, points[name]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return cells
}

// payloads returns the points of the table, by dataset.
func payloads(t testing.TB) []payload {
	t.Helper()
	all := []payload{
		{"t_json", "json", jsonPayload(), jsonCells()},
		{"t_rec", "rec", encoded(t, codec.Records(), recordPayload()), recordCells()},
		{"t_pb", "pb", protoPayload(t), protoCells()},
	}
	return append(all, singles(t)...)
}

func encoded[T any](t testing.TB, c codec.Codec[T], v T) []byte {
	t.Helper()
	data, err := codec.Append(c, nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// raw stores bytes under a tag.
type raw string

func (r raw) Tag() string { return string(r) }

func (r raw) Append(dst, v []byte) ([]byte, error) { return append(dst, v...), nil }

func (r raw) Decode([]byte) ([]byte, error) { return nil, errors.New("the table only writes") }
