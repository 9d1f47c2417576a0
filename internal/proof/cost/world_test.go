package cost

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reading is the value of every counted point: 29 bytes of JSON, or 18 of protobuf.
type reading struct {
	TempC    float64 `json:"temp_c"`
	Humidity float64 `json:"humidity"`
}

var value = reading{TempC: 21.5, Humidity: 40}

// binaryReading encodes a reading as a protobuf message { double temp_c = 1; double humidity = 2; }.
func binaryReading() codec.Codec[reading] {
	forth := func(b []byte) (reading, error) {
		if len(b) != 18 {
			return reading{}, fmt.Errorf("got %d bytes", len(b))
		}
		return reading{
			TempC:    math.Float64frombits(binary.LittleEndian.Uint64(b[1:])),
			Humidity: math.Float64frombits(binary.LittleEndian.Uint64(b[10:])),
		}, nil
	}
	back := func(r reading) ([]byte, error) {
		b := protowire.AppendTag(nil, 1, protowire.Fixed64Type)
		b = protowire.AppendFixed64(b, math.Float64bits(r.TempC))
		b = protowire.AppendTag(b, 2, protowire.Fixed64Type)
		return protowire.AppendFixed64(b, math.Float64bits(r.Humidity)), nil
	}
	return codec.Tagged("pb", codec.Convert(codec.Bytes(), forth, back))
}

var (
	acme = tenant.MustParse("acme")
	noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	d90  = gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)}
)

// schema returns the counted schema, with a case's options.
func schema(opts tsdb.SchemaOptions) *tsdb.Schema[reading] {
	if opts.Retention.Name == "" {
		opts.Retention = d90
	}
	return tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[reading](), opts)
}

// device returns the entity with a number. All names have the same length.
func device(i int) tsdb.Entity { return tsdb.NewEntity("berlin", fmt.Sprintf("d%05d", i)) }

func devices(n int) []tsdb.Entity {
	out := make([]tsdb.Entity, n)
	for i := range out {
		out[i] = device(i)
	}
	return out
}

// points returns `each` points for every device, a minute apart, the newest a minute before a time.
func points(before time.Time, devices, each int) []tsdb.Point[reading] {
	out := make([]tsdb.Point[reading], 0, devices*each)
	for d := range devices {
		for i := range each {
			out = append(out, tsdb.Point[reading]{Entity: device(d), Time: before.Add(-time.Duration(i+1) * time.Minute), Value: value})
		}
	}
	return out
}

// world is a store on a connection that counts.
type world struct {
	*testing.T
	ctx    context.Context
	store  *tsdb.Store
	conn   *tsdbtest.Conn
	meter  *meter
	schema *tsdb.Schema[reading]
	repo   *tsdb.Repository[reading]

	mu  sync.Mutex
	now time.Time
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) wait(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// newWorld opens a store with a schema. If the schema is nil, the table does not exist.
func newWorld(t *testing.T, s *tsdb.Schema[reading], opts tsdbtest.Options) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context(), meter: &meter{}, schema: s, now: noon}
	opts.Clock, opts.DialOptions = w.clock, w.meter.dialOptions()
	if s == nil {
		w.store, w.conn = tsdbtest.Open(t, opts)
		return w
	}
	w.store, w.conn = tsdbtest.Open(t, opts, s)
	w.repo = s.For(w.store, acme)
	return w
}

// ok ends the test if there is an error.
func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// put stores points before the count begins.
func (w *world) put(points []tsdb.Point[reading]) {
	w.Helper()
	_, err := w.repo.PutMany(w.ctx, points)
	w.ok(err)
}

// history stores `each` points for every device.
func (w *world) history(devices, each int) { w.put(points(w.clock(), devices, each)) }

// figure is the counted cost of a call.
type figure struct {
	calls              map[string]int
	seen, returned     int
	written            int
	sent, received     int
	upkeep             int
	upSent, upReceived int
}

// methods are the names of the requests, in the document's order.
var methods = []string{"read", "write", "bulk", "conditional", "sample", "admin"}

var methodNames = map[tsdbtest.Method]string{
	tsdbtest.ReadRows: "read", tsdbtest.MutateRow: "write", tsdbtest.MutateRows: "bulk",
	tsdbtest.CheckAndMutateRow: "conditional", "SampleRowKeys": "sample",
}

// count runs a call and returns what it cost.
func (w *world) count(call func()) figure {
	w.Helper()
	w.conn.Reset()
	w.meter.reset()
	call()
	counts := w.conn.Counts()
	calls, upkeep, _ := w.meter.read()
	f := figure{
		calls: map[string]int{}, seen: int(counts.RowsSeen), returned: int(counts.RowsReturned), written: calls.Written,
		sent: calls.Sent, received: calls.Received, upkeep: counts.Upkeep, upSent: upkeep.Sent, upReceived: upkeep.Received,
	}
	for m, n := range counts.Calls {
		if m == "PingAndWarm" {
			continue
		}
		name := methodNames[m]
		if name == "" {
			w.Fatalf("the store called %s, which has no name in the document's tables", m)
		}
		f.calls[name] += n
	}
	if calls.Admin > 0 {
		f.calls["admin"] = calls.Admin
	}
	return f
}
