package cost

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// sampled holds figures measured on a sample of the worked case's points.
type sampled struct {
	Key            string  // of one of the points
	RowBytes       float64 // bytes of a stored point
	Payload        float64 // bytes of its payload
	Sent, Returned float64 // bytes of messages per point: written in batches of 1,000, and read
	Snappy, Zstd   float64 // compression ratios of blocks of 64 KiB, to one decimal
	Rows           float64
}

// signal is a temperature and a humidity that change slowly, with two decimals and one, like a sensor's.
type signal struct {
	rng         *rand.Rand
	temp, humid float64
}

func (s *signal) next() reading {
	s.temp = min(45, max(-20, s.temp+float64(s.rng.NormFloat64()*0.08)))
	s.humid = min(100, max(0, s.humid+float64(s.rng.NormFloat64()*0.3)))
	return reading{TempC: math.Round(100*s.temp) / 100, Humidity: math.Round(10*s.humid) / 10}
}

// workedSchema returns the schema of the worked case.
func workedSchema(c codec.Codec[reading]) *tsdb.Schema[reading] {
	return tsdb.MustDefine("readings", tsdb.Key("site", "device"), c, tsdb.SchemaOptions{Retention: d90, Precision: tsdb.Milliseconds})
}

// sampleOf stores an hour of points of some devices of the worked case, and measures the rows.
func sampleOf(t *testing.T, c codec.Codec[reading]) (out sampled) {
	t.Helper()
	const devices, each = 8, 1000
	m, s := &meter{}, workedSchema(c)
	w := &world{T: t, ctx: t.Context(), meter: m, now: noon}
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: w.clock}, DialOptions: m.dialOptions()}, s)
	w.store, w.conn, w.schema, w.repo = store, conn, s, s.For(store, tenant.MustParse("tenant-042"))
	rng := rand.New(rand.NewPCG(20260601, 90))
	var all []tsdb.Point[reading]
	for d := range devices {
		sig := signal{rng: rng, temp: 20, humid: 40}
		at := noon.Add(-2 * time.Hour)
		for range each {
			at = at.Add(time.Duration(float64(time.Second) / perDevice * (0.9 + 0.2*rng.Float64())))
			all = append(all, tsdb.Point[reading]{Entity: tsdb.NewEntity("plant-07", fmt.Sprintf("d%05d", d)), Time: at, Value: sig.next()})
		}
	}
	written := w.count(func() {
		for batch := range len(all) / 1000 {
			w.put(all[1000*batch : 1000*(batch+1)])
		}
	})
	out.Rows = float64(len(all))
	out.Sent = float64(written.sent) / out.Rows
	read := w.count(func() { w.wantN(drain(w, w.repo.Range(w.ctx, all[0].Entity, tsdb.AllTime())), each) })
	out.Returned = float64(read.received) / each
	var table64 []byte
	err := table.ReadRows(t.Context(), bigtable.PrefixRange("tenant-042#readings#"), func(row bigtable.Row) bool {
		out.Key = row.Key()
		for _, items := range row {
			for _, item := range items {
				out.RowBytes += float64(len(row.Key()) + len(item.Column) - 1 + 8 + len(item.Value))
				out.Payload += float64(len(item.Value))
				table64 = append(table64, row.Key()...)
				table64 = append(table64, item.Column...)
				table64 = binary.BigEndian.AppendUint64(table64, uint64(item.Timestamp))
				table64 = append(table64, item.Value...)
			}
		}
		return true
	})
	w.ok(err)
	out.RowBytes /= out.Rows
	out.Payload /= out.Rows
	out.Snappy, out.Zstd = compressed(t, table64)
	return out
}

// compressed returns the compression ratios of the rows, block by block.
func compressed(t *testing.T, rows []byte) (bySnappy, byZstd float64) {
	t.Helper()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	var s, z int
	for left := rows; len(left) > 0; {
		block := left[:min(64<<10, len(left))]
		left = left[len(block):]
		s += len(snappy.Encode(nil, block))
		z += len(enc.EncodeAll(block, nil))
	}
	oneDecimal := func(n int) float64 { return math.Round(10*float64(len(rows))/float64(n)) / 10 }
	return oneDecimal(s), oneDecimal(z)
}
