package tsdbtest

import (
	"context"
	"io"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/internal/bt"
)

func (c *Conn) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	name, ok := strings.CutPrefix(method, dataService)
	if !ok {
		return streamer(ctx, desc, cc, method, opts...)
	}
	p := c.begin(ctx, Method(name))
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	s, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	if p.limit != nil && !bt.FollowsRateLimit(ctx) {
		p.limit = nil
	}
	return &perturbed{ClientStream: s, conn: c, plan: p, upkeep: bt.Upkeep(ctx)}, nil
}

// perturbed is a stream with faults.
type perturbed struct {
	grpc.ClientStream
	conn *Conn
	plan plan

	upkeep   bool    // its rows are counted separately
	passed   int     // rows or entries that the caller has got
	ended    error   // the error of the stream after the cut
	sent     []int64 // of a bulk write: the original index of each entry sent to the engine
	answered []*btpb.MutateRowsResponse_Entry
}

func (s *perturbed) SendMsg(m any) error {
	switch req := m.(type) {
	case *btpb.ReadRowsRequest:
		req.RequestStatsView = btpb.ReadRowsRequest_REQUEST_STATS_FULL
	case *btpb.MutateRowsRequest:
		if s.plan.entry != nil {
			return s.sendSome(req)
		}
	}
	return s.ClientStream.SendMsg(m)
}

// sendSome sends the entries that must not fail, and stores results for the others.
func (s *perturbed) sendSome(req *btpb.MutateRowsRequest) error {
	some := &btpb.MutateRowsRequest{TableName: req.TableName, AuthorizedViewName: req.AuthorizedViewName, AppProfileId: req.AppProfileId}
	for i, e := range req.Entries {
		if s.plan.entries(string(e.RowKey)) {
			s.answered = append(s.answered, &btpb.MutateRowsResponse_Entry{Index: int64(i), Status: status.Convert(s.plan.entry).Proto()})
			continue
		}
		s.sent = append(s.sent, int64(i))
		some.Entries = append(some.Entries, e)
	}
	if len(some.Entries) == 0 {
		s.ended = io.EOF // the engine refuses a request without entries
		return nil
	}
	return s.ClientStream.SendMsg(some)
}

func (s *perturbed) CloseSend() error {
	if s.ended != nil {
		return nil
	}
	return s.ClientStream.CloseSend()
}

func (s *perturbed) Header() (metadata.MD, error) {
	if s.ended != nil {
		return nil, nil
	}
	return s.ClientStream.Header()
}

func (s *perturbed) Trailer() metadata.MD {
	if s.ended != nil {
		return nil
	}
	return s.ClientStream.Trailer()
}

func (s *perturbed) RecvMsg(m any) error {
	if res, ok := m.(*btpb.MutateRowsResponse); ok && s.answered != nil {
		res.Entries, s.answered, res.RateLimitInfo = s.answered, nil, s.plan.limit
		return nil
	}
	if s.ended != nil {
		return s.end()
	}
	if s.plan.lose != nil {
		s.ended = s.plan.lose
		for s.ClientStream.RecvMsg(m) == nil {
		}
		return s.ended
	}
	if err := s.ClientStream.RecvMsg(m); err != nil {
		if err == io.EOF && s.plan.cut != nil && s.passed == s.plan.cutAt {
			s.ended = s.plan.cut
			return s.end()
		}
		return err
	}
	switch res := m.(type) {
	case *btpb.ReadRowsResponse:
		if res.RequestStats != nil {
			s.conn.countRows(res.RequestStats, s.upkeep)
		}
		if s.plan.cut != nil {
			return s.cutRows(res)
		}
	case *btpb.MutateRowsResponse:
		if s.plan.limit != nil {
			res.RateLimitInfo = s.plan.limit
		}
		for _, e := range res.Entries {
			if s.sent != nil {
				e.Index = s.sent[e.Index]
			}
		}
		if s.plan.cut != nil {
			return s.cutEntries(res)
		}
	}
	return nil
}

// cutRows passes the remaining rows of res before the cut. A response without a whole row left ends the stream.
func (s *perturbed) cutRows(res *btpb.ReadRowsResponse) error {
	for i, chunk := range res.Chunks {
		if s.passed == s.plan.cutAt {
			res.Chunks, res.RequestStats = res.Chunks[:i], nil
			return s.cutAfter(res, i)
		}
		if chunk.GetCommitRow() {
			s.passed++
		}
	}
	return nil
}

func (s *perturbed) cutEntries(res *btpb.MutateRowsResponse) error {
	left := s.plan.cutAt - s.passed
	if left >= len(res.Entries) {
		s.passed += len(res.Entries)
		return nil
	}
	s.passed += left
	res.Entries = res.Entries[:left]
	return s.cutAfter(res, left)
}

// cutAfter cuts the stream after res, of which left entries pass. If left is 0, it cuts immediately. It reads and drops
// the engine's other responses.
func (s *perturbed) cutAfter(res proto.Message, left int) error {
	s.ended = s.plan.cut
	rest := res.ProtoReflect().New().Interface()
	for s.ClientStream.RecvMsg(rest) == nil {
	}
	if left == 0 {
		return s.end()
	}
	return nil
}

// end returns the error of a stream that has ended. A stream that hangs first waits for its context.
func (s *perturbed) end() error {
	if s.plan.hang {
		<-s.Context().Done()
		return status.FromContextError(s.Context().Err()).Err()
	}
	return s.ended
}
