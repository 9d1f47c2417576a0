package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// writer returns a writer of the store that is closed with the test.
func writer(t *testing.T, store *tsdb.Store, opts tsdb.WriterOptions) *tsdb.Writer {
	t.Helper()
	w := must[*tsdb.Writer](t)(store.NewWriter(opts))
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	return w
}

// together is a Linger that does not end between the points of one call, on any clock and machine, so that they are
// sent in one request.
const together = 3 * time.Second

// waysIn are the ways to write a point through a writer and to get its outcome.
var waysIn = []struct {
	name string
	put  func(t *testing.T, store *tsdb.Store, opts tsdb.WriterOptions, repo *tsdb.Repository[reading], points []tsdb.Point[reading]) []tsdb.Outcome
}{
	{"Put", func(t *testing.T, store *tsdb.Store, opts tsdb.WriterOptions, repo *tsdb.Repository[reading], points []tsdb.Point[reading]) []tsdb.Outcome {
		failed := map[tsdb.Entity]tsdb.Outcome{}
		opts.OnFailure = func(u tsdb.Undelivered) {
			if u.Tenant != acme || u.Dataset != "readings" || !u.Time.Equal(points[0].Time) {
				t.Errorf("OnFailure got %+v", u)
			}
			failed[u.Entity] = u.Outcome
		}
		w := writer(t, store, opts)
		for _, p := range points {
			if err := repo.Via(w).Enqueue(t.Context(), p.Entity, p.Time, p.Value); err != nil {
				t.Fatal(err)
			}
		}
		err := w.Close(t.Context())
		var ue *tsdb.UndeliveredError
		if listed := errors.As(err, &ue); listed != (len(failed) > 0) || listed && (ue.Total != len(failed) || len(ue.Points) != len(failed)) {
			t.Errorf("Close = %v, and OnFailure got %d failures", err, len(failed))
		}
		outcomes := make([]tsdb.Outcome, len(points))
		for i, p := range points {
			if outcomes[i] = failed[p.Entity]; outcomes[i].State == 0 {
				outcomes[i] = tsdb.Outcome{State: tsdb.Stored, Attempts: 1} // the number of attempts is not reported
			}
		}
		return outcomes
	}},
	{"EnqueueFunc", func(t *testing.T, store *tsdb.Store, opts tsdb.WriterOptions, repo *tsdb.Repository[reading], points []tsdb.Point[reading]) []tsdb.Outcome {
		w := writer(t, store, opts)
		outcomes := make([]tsdb.Outcome, len(points))
		for i, p := range points {
			err := repo.Via(w).EnqueueFunc(t.Context(), p.Entity, p.Time, p.Value, func(o tsdb.Outcome) {
				if outcomes[i].State != 0 {
					t.Errorf("point %d: the callback was called twice", i)
				}
				outcomes[i] = o
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(t.Context()); err != nil {
			t.Errorf("Close = %v after all callbacks were called, want nil", err)
		}
		return outcomes
	}},
	{"PutMany", func(t *testing.T, store *tsdb.Store, opts tsdb.WriterOptions, repo *tsdb.Repository[reading], points []tsdb.Point[reading]) []tsdb.Outcome {
		w := writer(t, store, opts)
		outcomes, err := repo.Via(w).EnqueueMany(t.Context(), points)
		var be *tsdb.BatchError
		if stored := !slices.ContainsFunc(outcomes, func(o tsdb.Outcome) bool { return o.State != tsdb.Stored }); stored != (err == nil) || !stored && !errors.As(err, &be) {
			t.Errorf("EnqueueMany = %v, %v", outcomes, err)
		}
		return outcomes
	}},
}

// TestWriterReportsWhatTheTableConfirms covers every fault and every way of writing.
func TestWriterReportsWhatTheTableConfirms(t *testing.T) {
	parallelIfSlow(t)
	for _, first := range []bool{false, true} {
		for _, way := range waysIn {
			t.Run(fmt.Sprintf("%s,first=%v", way.name, first), func(t *testing.T) {
				parallelIfSlow(t)
				bubble(t, func(t *testing.T) {
					s := readings(t, tsdb.SchemaOptions{FirstWins: first})
					store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: faultTimeout() / 2}}}, s)
					repo := s.For(store, acme)
					kinds, method := bulkFaults, tsdbtest.MutateRows
					if first {
						kinds, method = faults, tsdbtest.CheckAndMutateRow
					}
					for i, f := range kinds {
						at := start.Add(time.Duration(i) * time.Second)
						pts := make([]tsdb.Point[reading], 5)
						for n := range pts {
							pts[n] = tsdb.Point[reading]{Entity: tsdb.NewEntity("berlin", fmt.Sprintf("d%d", n)), Time: at, Value: reading{float64(n)}}
						}
						inject(conn, method, f.fault)
						outcomes := way.put(t, store, tsdb.WriterOptions{DeliveryTimeout: faultTimeout()}, repo, pts)
						conn.Clear()
						there := rows(t, table)
						unknown := 0
						for n, o := range outcomes {
							key := fmt.Sprintf("acme#readings#berlin#d%d#%019d", n, (1<<63-1)-at.UnixNano())
							want := f.want
							if first && f.fault == nil && o.State == tsdb.Rejected {
								want = tsdb.Rejected // single requests: only the response of the first one was lost
							}
							if o.State == tsdb.Unknown {
								unknown++
							}
							if overTCP() && n > 0 && o.Attempts == 0 && errors.Is(o.Err, buffer.ErrTimeout) {
								want = tsdb.Rejected // on a slow machine, time can pass before each point was sent
								o.Attempts = 1
							}
							if overTCP() && n > 0 && want == tsdb.Unknown && o.Attempts == 1 && o.State == tsdb.Rejected {
								want = tsdb.Rejected // nor were all points in the request whose response was lost
							}
							confirm(t, fmt.Sprintf("%s, point %d (%v)", f.name, n, o.Err), o.State, want, there[key] != nil)
							if (o.Err == nil) != (o.State == tsdb.Stored) || o.Attempts == 0 {
								t.Errorf("%s, point %d: outcome %+v", f.name, n, o)
							}
						}
						if first && f.fault == nil && unknown != 1 {
							t.Errorf("%s: %d points are unknown, want the one whose response was lost", f.name, unknown)
						}
					}
				})
			})
		}
	}
}

// TestWriterOneBadPoint: a point that the store rejects, that the service rejects, or because of which the service
// rejects the whole request, does not affect other points.
func TestWriterOneBadPoint(t *testing.T) {
	parallelIfSlow(t)
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{MaxLate: time.Hour, MaxFuture: time.Hour, Retention: d90})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		w := writer(t, store, tsdb.WriterOptions{Linger: together})
		in := s.For(store, acme).Via(w)
		now := time.Now()
		e := func(d string) tsdb.Entity { return tsdb.NewEntity("berlin", d) }
		conn.Inject(tsdbtest.FailEntries(codes.InvalidArgument, func(key string) bool { return strings.Contains(key, "poison") }))
		outcomes, err := in.EnqueueMany(t.Context(), []tsdb.Point[reading]{
			{Entity: e("good1"), Time: now},
			{Entity: tsdb.NewEntity("berlin"), Time: now},
			{Entity: e("poison"), Time: now},
			{Entity: e("late"), Time: now.Add(-2 * time.Hour)},
			{Entity: e("early"), Time: now.Add(2 * time.Hour)},
			{Entity: e("good2"), Time: now},
		})
		wants := []error{nil, tsdb.ErrInvalid, tsdb.ErrRejected, tsdb.ErrLate, tsdb.ErrTooFarAhead, nil}
		var be *tsdb.BatchError
		if !errors.As(err, &be) || len(be.Failed) != 4 || be.Total != 6 {
			t.Fatalf("error %v", err)
		}
		for _, f := range be.Failed {
			if f.Outcome.State != tsdb.Rejected || !errors.Is(&tsdb.WriteError{Outcome: f.Outcome}, wants[f.Index]) {
				t.Errorf("point %d: outcome %+v, want %v", f.Index, f.Outcome, wants[f.Index])
			}
		}
		if outcomes[0].State != tsdb.Stored || outcomes[5].State != tsdb.Stored {
			t.Errorf("the good points: %v, %v", outcomes[0], outcomes[5])
		}
		if calls := conn.Counts().Calls[tsdbtest.MutateRows]; calls != 1 {
			t.Errorf("%d requests, want 1, without the point that the store rejects", calls)
		}
	})
}

// TestWriterRefusedAsAWhole: a service rejects a whole request because of one row.
func TestWriterRefusedAsAWhole(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store := through(t, tsdb.Timeouts{}, []tsdb.Dataset{s}, refuseRequestsWith("poison"))
		w := writer(t, store, tsdb.WriterOptions{})
		pts := points(40)
		pts[17].Entity = tsdb.NewEntity("berlin", "poison")
		outcomes, err := s.For(store, acme).Via(w).EnqueueMany(t.Context(), pts)
		var be *tsdb.BatchError
		if !errors.As(err, &be) || len(be.Failed) != 1 || be.Failed[0].Index != 17 || outcomes[17].State != tsdb.Rejected {
			t.Errorf("error %v", err)
		}
		if st := w.Stats(); st.Requests > 15 || st.Stored != 39 || st.Rejected != 1 {
			t.Errorf("stats %+v", st)
		}
	})
}

// TestWriterOutage: an hour without the service, while the producer writes without a pause. Memory stays bounded,
// requests stay few, and when the service is back no accepted point is missing.
func TestWriterOutage(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
		opts := tsdb.WriterOptions{BufferPoints: 200, BatchPoints: 100, BufferBytes: 16 << 20, DeliveryTimeout: 2 * time.Hour}
		w := writer(t, store, opts)
		in := s.For(store, acme).Via(w)
		end := conn.Outage()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		taken := 0
		for {
			err := in.Enqueue(ctx, roof, start.Add(time.Duration(taken)*time.Second), reading{1})
			if errors.Is(err, context.DeadlineExceeded) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			taken++
		}
		st := w.Stats()
		if st.BufferedPoints != taken || taken > opts.BufferPoints || st.BufferedBytes > opts.BufferBytes || st.Down == nil || st.OldestAge < 59*time.Minute {
			t.Errorf("%d points accepted; stats %+v", taken, st)
		}
		if err := in.TryEnqueue(t.Context(), roof, start, reading{1}); !errors.Is(err, tsdb.ErrBufferFull) || !errors.Is(err, tsdb.ErrRejected) {
			t.Errorf("TryEnqueue = %v, want ErrBufferFull", err)
		}
		if calls := conn.Counts().Calls[tsdbtest.MutateRows]; calls > 2000 {
			t.Errorf("%d requests in an hour of outage, want at most 2000", calls)
		}
		end()
		begin := time.Now()
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("delivery of all points took %v", took)
		}
		if n := len(rows(t, table)); n != taken {
			t.Errorf("%d of %d points are stored", n, taken)
		}
	})
}

// TestWriterGivesUp: after the delivery timeout, the outcome says whether a point may be stored.
func TestWriterGivesUp(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		w := writer(t, store, tsdb.WriterOptions{DeliveryTimeout: time.Minute})
		defer conn.Outage()()
		begin := time.Now()
		outcomes, err := s.For(store, acme).Via(w).EnqueueMany(t.Context(), points(3))
		if took := time.Since(begin); took < time.Minute || took > time.Minute+5*time.Second { // an attempt may have been running
			t.Errorf("the writer gave up after %v, want a minute", took)
		}
		if !errors.Is(err, buffer.ErrTimeout) || outcomes[0].Attempts == 0 || outcomes[0].State != tsdb.Unknown {
			t.Errorf("error %v, outcome %+v", err, outcomes[0])
		}
	})
}

// TestWriterLingersWithinDeliveryTimeout: a point is sent before its delivery timeout, however long it may linger.
func TestWriterLingersWithinDeliveryTimeout(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		w := writer(t, store, tsdb.WriterOptions{Linger: 5 * time.Minute})
		if outcomes, err := s.For(store, acme).Via(w).EnqueueMany(t.Context(), points(3)); err != nil {
			t.Errorf("error %v, outcome %+v", err, outcomes[0])
		}
	})
}

func TestWriterCloseEndsWithItsContext(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		conn.Inject(tsdbtest.Delay(time.Hour))
		w := writer(t, store, tsdb.WriterOptions{})
		in := s.For(store, acme).Via(w)
		var callbacks sync.WaitGroup
		var last tsdb.Outcome
		for i := range 5 {
			if err := in.Enqueue(t.Context(), roof, start.Add(time.Duration(i)*time.Second), reading{1}); err != nil {
				t.Fatal(err)
			}
		}
		callbacks.Add(1)
		err := in.EnqueueFunc(t.Context(), roof, start, reading{2}, func(o tsdb.Outcome) {
			last = o
			callbacks.Done()
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // on the simulated clock: they have been sent by now
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		err = w.Close(ctx)
		if took := time.Since(begin); took != time.Second {
			t.Errorf("Close took %v", took)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close = %v", err)
		}
		callbacks.Wait()
		var ue *tsdb.UndeliveredError
		if err = w.Close(t.Context()); !errors.As(err, &ue) || ue.Total != 5 || ue.Points[0].Entity != roof || !errors.Is(err, buffer.ErrClosed) {
			t.Errorf("a second Close = %v", err)
		}
		// The point that waited for its row was never sent. Those that were being sent may be stored.
		if last.State != tsdb.Rejected || !errors.Is(last.Err, buffer.ErrClosed) || ue.Points[0].Outcome.State != tsdb.Unknown {
			t.Errorf("the waiting point: %+v; a point being sent: %+v", last, ue.Points[0].Outcome)
		}
		calls := 0
		err = in.EnqueueFunc(t.Context(), roof, start, reading{2}, func(o tsdb.Outcome) {
			if calls++; o.State != tsdb.Rejected || !errors.Is(o.Err, buffer.ErrClosed) {
				t.Errorf("outcome after Close: %+v", o)
			}
		})
		if calls != 1 || !errors.Is(err, buffer.ErrClosed) {
			t.Errorf("after Close: the callback was called %d times, error %v", calls, err)
		}
	})
}

// TestWriterKeepsTheLastWrite: of several writes of one point the last is stored, whatever fails in between.
func TestWriterKeepsTheLastWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		w := writer(t, store, tsdb.WriterOptions{BatchPoints: 3, Linger: -1})
		conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.MutateRows).Times(2))
		conn.Inject(tsdbtest.FailEntries(codes.Aborted, func(key string) bool { return strings.Contains(key, "roof-7") }).Skip(3).Times(1))
		for i := range 20 {
			if err := repo.Via(w).Enqueue(t.Context(), roof, start.Add(time.Duration(i%2)*time.Second), reading{float64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, want := range []float64{18, 19} {
			if p, err := repo.Get(t.Context(), roof, start.Add(time.Duration(i)*time.Second)); err != nil || p.Value.TempC != want {
				t.Errorf("Latest = %v, %v; want %v", p.Value, err, want)
			}
		}
	})
}

// TestWriterFirstWins: the first of two values is kept, and the other gets ErrExists.
func TestWriterFirstWins(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{FirstWins: true})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	w := writer(t, store, tsdb.WriterOptions{})
	pts := append(points(100), points(100)...)
	pts[150].Value.TempC = 99
	outcomes, err := s.For(store, acme).Via(w).EnqueueMany(t.Context(), pts)
	var be *tsdb.BatchError
	if !errors.As(err, &be) || len(be.Failed) != 1 || be.Failed[0].Index != 150 || !errors.Is(outcomes[150].Err, tsdb.ErrExists) {
		t.Errorf("error %v, want ErrExists", err)
	}
}

// TestWriterAdmits: the hook Admit can reject a point, and gets its tenant.
func TestWriterAdmits(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	over := errors.New("over the limit")
	seen := map[tenant.ID]int{}
	w := writer(t, store, tsdb.WriterOptions{Admit: func(_ context.Context, id tenant.ID, bytes int) error {
		if seen[id]++; bytes <= 0 {
			t.Errorf("Admit got %d bytes", bytes)
		}
		if id == acme {
			return over
		}
		return nil
	}})
	beta := tenant.MustParse("beta")
	if err := s.For(store, acme).Via(w).Enqueue(t.Context(), roof, start, reading{}); !errors.Is(err, over) || !errors.Is(err, tsdb.ErrRejected) {
		t.Errorf("Enqueue = %v, want the hook's error", err)
	}
	if err := s.For(store, beta).Via(w).Enqueue(t.Context(), roof, start, reading{}); err != nil {
		t.Error(err)
	}
	if want := map[tenant.ID]int{acme: 1, beta: 1}; !maps.Equal(seen, want) {
		t.Errorf("Admit was called for %v", seen)
	}
}

func TestWriterOptionsAreChecked(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{Retention: gc.Class{}})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	other, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	for field, opts := range map[string]tsdb.WriterOptions{
		"BatchPoints": {BatchPoints: 5001}, "BatchBytes": {BatchBytes: -1}, "BufferPoints": {BufferPoints: -1},
		"BufferBytes": {BufferBytes: 1 << 20}, "InFlight": {InFlight: 1001}, "DeliveryTimeout": {DeliveryTimeout: -1},
	} {
		var ie *tsdb.InvalidError
		if _, err := store.NewWriter(opts); !errors.As(err, &ie) || ie.Field != field || !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: %v, want an error that names the field", field, err)
		}
	}
	w := writer(t, store, tsdb.WriterOptions{})
	for name, err := range map[string]error{
		"another store's writer": s.For(other, acme).Via(w).Enqueue(t.Context(), roof, start, reading{}),
		"no writer":              s.For(store, acme).Via(nil).Enqueue(t.Context(), roof, start, reading{}),
		"the zero writer":        s.For(store, acme).Via(new(tsdb.Writer)).Enqueue(t.Context(), roof, start, reading{}),
		"no sink":                (*tsdb.Sink[reading])(nil).Enqueue(t.Context(), roof, start, reading{}),
		"the zero sink":          new(tsdb.Sink[reading]).Enqueue(t.Context(), roof, start, reading{}),
		"nobody to tell":         s.For(store, acme).Via(w).EnqueueFunc(t.Context(), roof, start, reading{}, nil),
		"closing the zero":       new(tsdb.Writer).Close(t.Context()),
		"flushing the zero":      new(tsdb.Writer).Flush(t.Context()),
	} {
		if !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

// refuseRequestsWith makes the service reject each bulk request that holds a row whose key contains part.
func refuseRequestsWith(part string) grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, cc, name, opts...)
		if err != nil {
			return nil, err
		}
		return &picky{ClientStream: s, part: part}, nil
	})
}

type picky struct {
	grpc.ClientStream
	part    string
	refused bool
}

func (p *picky) SendMsg(m any) error {
	if req, ok := m.(*btpb.MutateRowsRequest); ok {
		for _, e := range req.Entries {
			if strings.Contains(string(e.RowKey), p.part) {
				p.refused = true
				m = &btpb.MutateRowsRequest{TableName: req.TableName} // a request without effect
			}
		}
	}
	return p.ClientStream.SendMsg(m)
}

func (p *picky) RecvMsg(m any) error {
	err := p.ClientStream.RecvMsg(m)
	if p.refused {
		return grpcstatus.Error(codes.InvalidArgument, "one of the rows is bad")
	}
	return err
}
