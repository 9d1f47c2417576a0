package tsdb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestWriterReusesNoMemoryOfRequests: a writer uses the memory of points again. Requests that were lost, repeated, cut
// or cancelled, and those that a proxy still holds when the writer is closed, keep their rows and values.
func TestWriterReusesNoMemoryOfRequests(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		const rounds, each = 12, 500
		var mu sync.Mutex
		var held []*btpb.MutateRowsRequest
		hold := onRequest("MutateRows", func(m any) {
			mu.Lock()
			defer mu.Unlock()
			held = append(held, m.(*btpb.MutateRowsRequest))
		}, func() {})
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{
			StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: 50 * time.Millisecond}},
			DialOptions:  []grpc.DialOption{hold},
		}, s)
		repos := []*tsdb.Repository[reading]{s.For(store, acme), s.For(store, tenant.MustParse("acme2"))}
		faults := []tsdbtest.Fault{
			tsdbtest.LoseResponse(codes.Unavailable), tsdbtest.Fail(codes.Unavailable), tsdbtest.CutStream(3, codes.Unavailable), tsdbtest.Delay(100 * time.Millisecond),
		}
		n := 0
		for round := range rounds {
			w, err := store.NewWriter(tsdb.WriterOptions{BatchPoints: 50, BufferPoints: 200, Linger: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			conn.Inject(faults[round%len(faults)].On(tsdbtest.MutateRows).Times(2 + round%3))
			for k := range each {
				e := tsdb.NewEntity("berlin", strconv.Itoa(k%7))
				if err := repos[k%2].Via(w).Enqueue(t.Context(), e, start.Add(time.Duration(n)), reading{float64(n)}); err != nil {
					t.Fatal(err)
				}
				n++
			}
			ctx := t.Context()
			if round%3 == 2 { // close while requests run
				ended, cancel := context.WithCancel(ctx)
				cancel()
				ctx = ended
			}
			if err := w.Close(ctx); err != nil && ctx.Err() == nil {
				t.Fatal(err)
			}
			conn.Clear()
		}
		for _, repo := range repos {
			for k := range 7 {
				e := tsdb.NewEntity("berlin", strconv.Itoa(k))
				for p, err := range repo.Range(t.Context(), e, tsdb.AllTime()) {
					if at := p.Time.Sub(start); err != nil || p.Value.TempC != float64(at) || int(at)%each%7 != k {
						t.Fatalf("%v at %d is %v, %v", e, at, p.Value, err)
					}
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if len(held) < rounds*each/50 {
			t.Fatalf("%d requests were held", len(held))
		}
		for _, req := range held {
			for _, e := range req.Entries {
				key := string(e.RowKey)
				rev, _ := strconv.ParseInt(key[len(key)-19:], 10, 64)
				at := int((1<<63 - 1) - rev - start.UnixNano())
				var v reading
				err := json.Unmarshal(e.Mutations[0].GetSetCell().GetValue(), &v)
				if want := fmt.Sprintf("%s#readings#berlin#%d#", repos[at%each%2].Tenant(), at%each%7); err != nil || v.TempC != float64(at) || key[:len(key)-19] != want {
					t.Fatalf("a request holds %v (%v) at %s, want %s", v, err, key, want)
				}
			}
		}
	})
}
