package telemetry_test

// Bucket boundaries from https://opentelemetry.io/docs/specs/semconv/db/database-metrics/.
var (
	seconds    = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}
	rowsBounds = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000}
)

// instruments are all metrics.
var instruments = map[string]struct {
	unit, kind string
	bounds     []float64
}{
	"db.client.operation.duration":     {"s", "Histogram[float64]", seconds},
	"db.client.response.returned_rows": {"{row}", "Histogram[int64]", rowsBounds},
	"tidemark.attempt.duration":        {"s", "Histogram[float64]", seconds},
	"tidemark.writer.batch.size":       {"{point}", "Histogram[int64]", rowsBounds},
	"tidemark.writer.queue.wait":       {"s", "Histogram[float64]", seconds},

	"tidemark.writer.buffer.points":          {"{point}", "level", nil},
	"tidemark.writer.buffer.bytes":           {"By", "level", nil},
	"tidemark.writer.buffer.capacity.points": {"{point}", "level", nil},
	"tidemark.writer.buffer.capacity.bytes":  {"By", "level", nil},
	"tidemark.writer.oldest.age":             {"s", "Gauge[float64]", nil},
	"tidemark.writer.accepted":               {"{point}", "counter", nil},
	"tidemark.writer.points":                 {"{point}", "counter", nil},
	"tidemark.writer.requests":               {"{request}", "counter", nil},
	"tidemark.writer.retries":                {"{request}", "counter", nil},
	"tidemark.writer.blocked.time":           {"s", "counter", nil},
	"tidemark.writer.requests.inflight":      {"{request}", "level", nil},
	"tidemark.writer.requests.limit":         {"{request}", "level", nil},
	"tidemark.writer.rate.limit":             {"By/s", "level", nil},
	"tidemark.writer.down":                   {"{writer}", "level", nil},
	"tidemark.writer.tenant.points":          {"{point}", "counter", nil},
	"tidemark.writer.tenant.bytes":           {"By", "counter", nil},
	"tidemark.journal.points":                {"{point}", "level", nil},
	"tidemark.journal.bytes":                 {"By", "level", nil},
	"tidemark.journal.capacity":              {"By", "level", nil},
	"tidemark.journal.dead_letters":          {"{point}", "level", nil},
	"tidemark.cache.requests":                {"{request}", "counter", nil},
	"tidemark.cache.entries":                 {"{entity}", "level", nil},
	"tidemark.cache.bytes":                   {"By", "level", nil},
	"tidemark.rollup.lag":                    {"s", "Gauge[float64]", nil},
}
