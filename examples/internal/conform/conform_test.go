package conform_test

import (
	"net"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable/bttest"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/examples/internal/conform"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server returns an engine in memory.
func server(t *testing.T) *local.Server {
	t.Helper()
	s, err := local.Open(engine.Options{GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func run(t *testing.T, o conform.Options) *conform.Report {
	t.Helper()
	o.Project, o.Instance = "p", "i"
	r, err := conform.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantAll(t *testing.T, r *conform.Report) {
	t.Helper()
	for _, c := range r.Unmet() {
		t.Errorf("%s: %s: %q, want %q", c.Name, c.Status, c.Seen, c.Expected)
	}
	if len(r.Results) < 50 {
		t.Errorf("%d cases, want all", len(r.Results))
	}
}

// The engine conforms: called in process, with all cases, and over TCP.
func TestEngine(t *testing.T) {
	s := server(t)
	wantAll(t, run(t, conform.Options{Dial: s.Dial, Quick: testkit.Raced}))
	wantAll(t, run(t, conform.Options{Dial: serve(t, s.Register), Quick: true}))
}

// serve serves over TCP and returns how to dial it.
func serve(t *testing.T, register func(grpc.ServiceRegistrar)) func(...grpc.DialOption) (*grpc.ClientConn, error) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.MaxRecvMsgSize(256 << 20))
	register(srv)
	go func() { _ = srv.Serve(lis) }()
	t.Cleanup(srv.Stop)
	return dialAt(lis.Addr().String())
}

func dialAt(addr string) func(...grpc.DialOption) (*grpc.ClientConn, error) {
	return func(opts ...grpc.DialOption) (*grpc.ClientConn, error) {
		return grpc.NewClient("passthrough:///"+addr, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	}
}

// What the official fake gets wrong is in testdata/fake.txt. A new version of the client may change it.
func TestFake(t *testing.T) {
	testkit.Plain(t)
	srv, err := bttest.NewServer("127.0.0.1:0", grpc.MaxRecvMsgSize(256<<20))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	r := run(t, conform.Options{Dial: dialAt(srv.Addr), Quick: true})
	var got strings.Builder
	for _, c := range r.Unmet() {
		got.WriteString(c.Name + ": " + c.Claim + "\n\tthe fake: " + strings.ReplaceAll(c.Seen, r.Table, "TABLE") + "\n")
	}
	testkit.Golden(t, "testdata/fake.txt", got.String(), "the fake differs from Bigtable in other cases")
}
