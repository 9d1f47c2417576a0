package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// hashMap has datasets of both kinds.
const hashMap = otlpMap + "store hash.* in hashed by resource.host.name *hash\n"

// points returns the points of a dataset as texts, without the hashes of their keys, and how many entities they have.
func (r *rig) points(t *testing.T, dataset string) (texts []string, entities int) {
	t.Helper()
	seen := map[tsdb.Entity]bool{}
	for p, err := range r.repository(t, dataset, acme).Under(tsdb.AllEntities()).Range(t.Context(), tsdb.AllTime()) {
		if err != nil {
			t.Fatal(err)
		}
		seen[p.Entity] = true
		parts := p.Entity.Parts()
		texts = append(texts, fmt.Sprint(parts[:len(parts)-1], p.Time.UnixNano()-int64(at), p.Value))
	}
	slices.Sort(texts)
	return texts, len(seen)
}

// wantPoints fails the test unless a dataset has exactly these points.
func (r *rig) wantPoints(t *testing.T, what string, entities int, want ...string) {
	t.Helper()
	got, n := r.points(t, "hashed")
	if !slices.Equal(got, want) || n != entities {
		t.Errorf("%s: %d entities with\n\t%s\nwant %d with\n\t%s", what, n, strings.Join(got, "\n\t"), entities, strings.Join(want, "\n\t"))
	}
}

// sendAll sends requests, and fails the test if a data point is refused.
func (r *rig) sendAll(t *testing.T, requests ...proto.Message) {
	t.Helper()
	for _, m := range requests {
		if got, response := r.send(t, m); got.Code != http.StatusOK || response.PartialSuccess != nil {
			t.Fatalf("status %d, %v", got.Code, response)
		}
	}
}

// onlyBulk fails the test if more than bulk writes were sent since the last call of Reset.
func (r *rig) onlyBulk(t *testing.T) {
	t.Helper()
	if calls := r.conn.Counts().Calls; calls[tsdbtest.MutateRows] == 0 || len(calls) > 1 {
		t.Errorf("the requests were %v, want only MutateRows: data points are read before they are written", calls)
	}
}

// TestHashedStreams: data points of one key and time with other attributes, another metric or another kind are points
// of their own, however they are grouped into requests. Sending them again changes nothing. Nothing is read.
func TestHashedStreams(t *testing.T) {
	for _, journal := range []bool{false, true} {
		args := []string{"-key", "cpu=host", "-routes", write(t, hashMap)}
		if journal {
			args = append(args, "-journal", t.TempDir())
		}
		r := newRig(t, ample, args...)
		done := func() {
			t.Helper()
			if err := r.in.sink.Writer.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		r.conn.Reset()
		late := number(3, attr("cpu", 0))
		late.TimeUnixNano -= 5
		two := func() []*metricspb.NumberDataPoint {
			return []*metricspb.NumberDataPoint{number(1, attr("cpu", 0), attr("mode", "x")), number(2, attr("mode", "x"), attr("cpu", 1))}
		}
		r.sendAll(t, request(gauge("hash.g", two()...)))
		done()
		r.onlyBulk(t)
		first := []string{
			`[a] 0 {hash.g=1i tag:cpu="0" tag:mode="x"}`,
			`[a] 0 {hash.g=2i tag:cpu="1" tag:mode="x"}`,
		}
		r.wantPoints(t, "two streams in one request", 2, first...)

		// Again: the same request, in another order, with the attributes in another order, and in requests of their
		// own.
		again := two()
		slices.Reverse(again)
		slices.Reverse(again[0].Attributes)
		r.conn.Reset()
		r.sendAll(t, request(gauge("hash.g", two()...)), request(gauge("hash.g", again...)), request(gauge("hash.g", again[0])), request(gauge("hash.g", again[1], again[1])))
		done()
		r.onlyBulk(t)
		r.wantPoints(t, "sent again", 2, first...)

		// Metrics and kinds of one series and time, in one request and in another one, and a late point.
		r.sendAll(t, request(gauge("hash.h", number(4, attr("cpu", 0), attr("mode", "x"))), sum("hash.g", delta, true, number(5, attr("cpu", 0), attr("mode", "x")))))
		r.sendAll(t, request(gauge("hash.g", late)), request(gauge("hash.g", two()...)))
		// A later value of the same point replaces it, as in any dataset.
		r.sendAll(t, request(gauge("hash.g", number(7, attr("mode", "x"), attr("cpu", 1)))))
		done()
		r.wantPoints(t, "other metrics and kinds", 5,
			`[a] -5 {hash.g=3i tag:cpu="0"}`,
			`[a] 0 {hash.g:delta=5i hash.g:start=`+fmt.Sprint(begun)+`i tag:cpu="0" tag:mode="x"}`,
			first[0],
			`[a] 0 {hash.g=7i tag:cpu="1" tag:mode="x"}`,
			`[a] 0 {hash.h=4i tag:cpu="0" tag:mode="x"}`,
		)

		// In one request the last of two data points of one stream and time remains, whole.
		r.sendAll(t, request(histogram("hash.d", cumulative, &metricspb.HistogramDataPoint{Count: 1, BucketCounts: []uint64{1, 0}, ExplicitBounds: []float64{1}}),
			histogram("hash.d", cumulative, &metricspb.HistogramDataPoint{Count: 2, BucketCounts: []uint64{1, 1}, ExplicitBounds: []float64{2}})))
		done()
		got, _ := r.points(t, "hashed")
		if want := `[a] 0 {hash.d:count=2u hash.d:le:2=1u hash.d:start=` + fmt.Sprint(begun) + `i}`; !slices.Contains(got, want) {
			t.Errorf("of two data points of a stream and time in one request there are\n\t%s\nwant the last: %s", strings.Join(got, "\n\t"), want)
		}
	}
}

// TestHashedStreamsBesideOthers: datasets without a hash are stored as before, a stored one cannot become hashed, and
// line protocol cannot write to a hashed one.
func TestHashedStreamsBesideOthers(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host", "-routes", write(t, hashMap))
	r.sendAll(t, request(gauge("m.g", number(1))), request(gauge("m.h", number(2))), request(gauge("all.g", number(3, attr("cpu", 0)))))
	r.stored(t, "host", acme, start, `{m.g=1i m.h=2i}`, "a")
	r.stored(t, "every", acme, start, `{all.g=3i}`, "a", "cpu=0")

	for dataset, line := range map[string]string{"host": "store m.* in host by resource.host.name *hash", "every": "store all.* in every by resource.host.name *hash"} {
		keys := inbound.Keys{}
		if err := new(inbound.Mapping).Add(line, keys); err != nil {
			t.Fatal(err)
		}
		if _, err := inbound.NewDatasets(t.Context(), r.in.sink.Store, keys, inbound.Options{}); err == nil || !strings.Contains(err.Error(), dataset) {
			t.Errorf("%s, where %s is stored otherwise: %v, want a conflict", line, slices.Collect(maps.Keys(keys)), err)
		}
	}
	r.stored(t, "host", acme, start, `{m.g=1i m.h=2i}`, "a")

	got := r.post(v2, "hashed,resource.host.name=a usage=1 1767225600000000000")
	want(t, "a line for a hashed dataset", got, http.StatusBadRequest, "stores OTLP metrics only")
	r.wantPoints(t, "after a line", 0)
}
