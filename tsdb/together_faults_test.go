package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestLatestManyPastARangeThatFails: if the range of one device cannot be reached, the others are read, whether or not
// they were read before.
func TestLatestManyPastARangeThatFails(t *testing.T) {
	for _, warmed := range []bool{false, true} {
		longBubble(t, func(t *testing.T) {
			s := readings(t, tsdb.SchemaOptions{})
			down := false
			store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{
				grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
					st, err := streamer(ctx, desc, cc, name, opts...)
					if err != nil || !strings.HasSuffix(name, "/ReadRows") {
						return st, err
					}
					return &streamThatFails{ClientStream: st, down: &down}, nil
				}),
			}}, s)
			repo := s.For(store, acme)
			var devices []tsdb.Entity
			for n := range 40 {
				devices = append(devices, device("berlin", n))
				putAll(t, repo, []tsdb.Point[reading]{{Entity: devices[n], Time: start, Value: reading{float64(n)}}})
			}
			if warmed {
				warm(t, repo, conn, devices)
			}
			down = true
			for call := range 3 {
				begin := time.Now()
				answers, err := latestMany(t.Context(), repo, devices)
				if failed := failures(answers); failed != 1 {
					t.Errorf("warm %v, call %d: %d of 40 devices failed after %v, want 1 (%v)", warmed, call, failed, time.Since(begin), err)
				}
			}
		})
	}
}

// TestLatestManyOfADeviceThatWasEmpty: devices without points are remembered as such. If the next read fails before it
// reaches them, they have an error or their new point; they must not seem to be without points still.
func TestLatestManyOfADeviceThatWasEmpty(t *testing.T) {
	for name, fault := range map[string]tsdbtest.Fault{
		"unavailable": tsdbtest.Fail(codes.Unavailable), "silent": tsdbtest.Hang(0), "cut": tsdbtest.CutStream(2, codes.Unavailable), "silent after 2 rows": tsdbtest.Hang(2),
	} {
		longBubble(t, func(t *testing.T) {
			s := readings(t, tsdb.SchemaOptions{})
			store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
			repo := s.For(store, acme)
			var devices []tsdb.Entity
			for n := range 8 {
				devices = append(devices, device("berlin", n))
			}
			warm(t, repo, conn, devices)
			for n, e := range devices {
				putAll(t, repo, []tsdb.Point[reading]{{Entity: e, Time: start, Value: reading{float64(n)}}})
			}
			conn.Inject(fault.On(tsdbtest.ReadRows))
			answers, err := latestMany(t.Context(), repo, devices)
			for n, a := range answers {
				if errors.Is(a.Err, tsdb.ErrNotFound) || a.Err == nil && a.Point.Value != (reading{float64(n)}) {
					t.Errorf("%s: device %d is %v, %v, although its point is stored (%v)", name, n, a.Point, a.Err, err)
				}
			}
		})
	}
}

// failures returns how many devices could not be read.
func failures(answers []latestResult[reading]) (n int) {
	for _, a := range answers {
		if a.Err != nil {
			n++
		}
	}
	return n
}

// streamThatFails is a read stream that fails if it reads the first device.
type streamThatFails struct {
	grpc.ClientStream
	down *bool
	bad  bool
}

// SendMsg notes whether the request includes the first device.
func (s *streamThatFails) SendMsg(m any) error {
	if req, ok := m.(*btpb.ReadRowsRequest); ok && *s.down {
		s.bad = strings.Contains(fmt.Sprint(req.Rows), "#d-0#") || strings.Contains(fmt.Sprint(req.Rows), "d-000")
	}
	return s.ClientStream.SendMsg(m)
}

func (s *streamThatFails) RecvMsg(m any) error {
	if s.bad {
		return grpcstatus.Error(codes.Unavailable, "tablet")
	}
	return s.ClientStream.RecvMsg(m)
}

// TestLatestManyOverASlowLink: at 10ms a row, 1,500 devices take 15s, and the timeout of reads is 10s.
func TestLatestManyOverASlowLink(t *testing.T) {
	for _, warmed := range []bool{false, true} {
		longBubble(t, func(t *testing.T) {
			s := readings(t, tsdb.SchemaOptions{})
			slow := false
			store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{onStream("ReadRows", func(m any) error {
				if slow {
					for _, c := range m.(*btpb.ReadRowsResponse).Chunks {
						if len(c.RowKey) > 0 {
							time.Sleep(10 * time.Millisecond)
						}
					}
				}
				return nil
			})}}, s)
			repo := s.For(store, acme)
			var devices []tsdb.Entity
			var points []tsdb.Point[reading]
			for n := range 1500 {
				devices = append(devices, device("berlin", n))
				points = append(points, tsdb.Point[reading]{Entity: devices[n], Time: start, Value: reading{float64(n)}})
			}
			putAll(t, repo, points)
			if warmed {
				warm(t, repo, conn, devices)
			}
			slow = true
			for call := range 2 {
				begin := time.Now()
				answers, err := latestMany(t.Context(), repo, devices)
				if failed := failures(answers); failed > 0 {
					t.Errorf("warm %v, call %d: %d of %d devices failed after %v (%v)", warmed, call, failed, len(devices), time.Since(begin), err)
				}
				if !warmed {
					break // the second call would be warm
				}
			}
		})
	}
}

// TestLatestManyHoldsFewPayloads: a shared request ends once its payloads are over 16 MiB, and the rest is read alone.
func TestLatestManyHoldsFewPayloads(t *testing.T) {
	testkit.Plain(t)
	s := tsdb.MustDefine("blobs", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	var devices []tsdb.Entity
	for n := range 20 {
		devices = append(devices, device("berlin", n))
		if err := repo.Put(t.Context(), devices[n], start, strings.Repeat("x", 1<<20+n)); err != nil {
			t.Fatal(err)
		}
	}
	for call, requests := range []int{20, 1 + 4} { // the first 16 are together; the others are read alone
		conn.Reset()
		answers, err := latestMany(t.Context(), repo, devices)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range answers {
			if a.Err != nil || len(a.Point.Value) != 1<<20+i {
				t.Errorf("call %d, answer %d: %d bytes, %v", call, i, len(a.Point.Value), a.Err)
			}
		}
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; n != requests {
			t.Errorf("call %d: %d requests, want %d", call, n, requests)
		}
	}
}

// TestLatestManyOfANewDataset: a dataset is deleted, and its name is used again with larger units of time. What the
// store remembers of the former entities does no harm.
func TestLatestManyOfANewDataset(t *testing.T) {
	former, s := readings(t, tsdb.SchemaOptions{}), readings(t, tsdb.SchemaOptions{Precision: tsdb.Milliseconds})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, former)
	var devices []tsdb.Entity
	var points []tsdb.Point[reading]
	for n := range 5 {
		devices = append(devices, device("berlin", n))
		points = append(points, tsdb.Point[reading]{Entity: devices[n], Time: start, Value: reading{float64(n)}})
	}
	putAll(t, former.For(store, acme), points[1:]) // the first device has no point
	sameAsLatest(t, "the former dataset", former.For(store, acme), devices)
	part := tenants.Part{Dataset: former.Name()}
	_, err := tenants.Remove(t.Context(), store, part, tenants.RemoveOptions{Settle: time.Millisecond})
	if err := errors.Join(err, tenants.Release(t.Context(), store, part), store.Ensure(t.Context(), s)); err != nil {
		t.Fatal(err)
	}
	putAll(t, s.For(store, acme), points)
	sameAsLatest(t, "the new dataset", s.For(store, acme), devices)
}
