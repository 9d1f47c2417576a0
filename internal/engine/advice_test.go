package engine_test

import (
	"encoding/base64"
	"net"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/engine/inproc"
)

// TestAdviceOnTheRate checks that an engine whose writes had to wait asks for less, and later for more, but only
// clients that announce that they follow it, over the network and in process.
func TestAdviceOnTheRate(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	r.Register(server)
	go func() { _ = server.Serve(lis) }()
	defer server.Stop()
	remote, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	local, err := inproc.Dial(r.Engine)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	for _, tt := range []struct {
		waited  time.Duration // before the request; 0 means never
		follows bool
		want    float64 // 0 means no advice
	}{
		{0, true, 0},
		{time.Millisecond, true, 0.7},
		{time.Millisecond, false, 0},
		{5 * time.Second, true, 1.3},
		{time.Minute, true, 0},
	} {
		r.SetWaited(tt.waited)
		flags, err := proto.Marshal(&bigtablepb.FeatureFlags{RetryInfo: true, MutateRowsRateLimit2: tt.follows})
		if err != nil {
			t.Fatal(err)
		}
		for name, conn := range map[string]*grpc.ClientConn{"network": remote, "in process": local} {
			ctx := metadata.AppendToOutgoingContext(r.ctx, "bigtable-features", base64.URLEncoding.EncodeToString(flags))
			stream, err := bigtablepb.NewBigtableClient(conn).MutateRows(ctx, &bigtablepb.MutateRowsRequest{
				TableName: fullName,
				Entries: []*bigtablepb.MutateRowsRequest_Entry{{RowKey: []byte("r"), Mutations: []*bigtablepb.Mutation{
					{Mutation: &bigtablepb.Mutation_DeleteFromRow_{DeleteFromRow: &bigtablepb.Mutation_DeleteFromRow{}}},
				}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			res, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if got := res.GetRateLimitInfo(); got.GetFactor() != tt.want || tt.want > 0 && got.GetPeriod().AsDuration() <= 0 {
				t.Errorf("%s, waited %v ago, follows %v: got %v, want a factor of %v", name, tt.waited, tt.follows, got, tt.want)
			}
		}
	}
}
