package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/programtest"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

var rounds = flag.Int("crash.rounds", 1, "how often TestKill kills the process, for each kind of route")

func TestMain(m *testing.M) {
	programtest.RunMain(main)
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"),                             // begins when its package is imported
		goleak.IgnoreTopFunction("cloud.google.com/go/pubsub/v2.(*messageIterator).streamKeepAliveHandler")) // outlives Receive
}

// process is the program in a process of its own.
type process struct {
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	out    *bufio.Reader
}

// startProcess starts the program, and waits until it receives messages.
func startProcess(t *testing.T, s *service, env []string, args ...string) *process {
	t.Helper()
	cmd, stderr := programtest.New(t, append([]string{"-subscription", subscription, "-dead-letters", poison}, args...)...)
	cmd.Env = append(append(cmd.Env, "PUBSUB_EMULATOR_HOST="+s.Addr), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, stderr, bufio.NewReader(out)}
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			t.Fatalf("the program ended: %v\n%s", err, stderr)
		}
		if strings.HasPrefix(line, "Storing") {
			return p
		}
	}
}

// slowStore serves Bigtable's API from a folder, takes some milliseconds for each write, and loses some responses. It
// outlives the processes that write to it, until stop.
func slowStore(t *testing.T, dir string) (env []string, stop func()) {
	t.Helper()
	disturb := func(handle func() error) error {
		time.Sleep(rand.N(8 * time.Millisecond))
		err := handle()
		if err == nil && rand.IntN(20) == 0 {
			return status.Error(codes.Unavailable, "the response is lost")
		}
		return err
	}
	server, err := embedded.NewServer(embedded.Options{Dir: dir, ServerOptions: []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (res any, err error) {
			if !strings.HasSuffix(info.FullMethod, "MutateRow") {
				return h(ctx, req)
			}
			err = disturb(func() error { res, err = h(ctx, req); return err })
			return res, err
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			if !strings.HasSuffix(info.FullMethod, "MutateRows") {
				return h(srv, stream)
			}
			return disturb(func() error { return h(srv, stream) })
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, lis) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-ended, server.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return []string{"BIGTABLE_EMULATOR_HOST=" + lis.Addr().String(), "TIDEMARK_PROJECT=" + embedded.Project, "TIDEMARK_INSTANCE=" + embedded.Instance, "TIDEMARK_TABLE=tidemark"}, stop
}

// acknowledged waits until a condition holds. From time to time it lets leases expire: the server may have sent
// messages to a process that was killed, before it noticed.
func (s *service) acknowledged(t *testing.T, what string, holds func() bool) {
	t.Helper()
	last := time.Now()
	eventually(t, what+" are acknowledged", func() bool {
		if time.Since(last) > 5*time.Second {
			s.expireLeases()
			last = time.Now()
		}
		return holds()
	})
}

// TestKill kills the process while it stores messages, again and again. In the end every message is acknowledged and
// stored, and each is counted once.
func TestKill(t *testing.T) {
	const perRound = 40
	for _, tt := range []struct {
		name  string
		args  []string
		check func(t *testing.T, store *tsdb.Store, n int)
	}{
		{"points", []string{"-route", pointsRoute, "-attributes", "site"}, checkPoints},
		{"journal", []string{"-route", pointsRoute, "-attributes", "site", "-journal", filepath.Join(t.TempDir(), "journal")}, checkPoints},
		{"counts", []string{"-route", countsRoute}, checkCounts},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			env, stop := slowStore(t, dir)
			s := newService(t, func(s *pb.Subscription) { s.EnableExactlyOnceDelivery = tt.name == "counts" })
			args := append([]string{"-cloud", "-max-messages", "10"}, tt.args...)
			var ids []string
			for round := range *rounds {
				p := startProcess(t, s, env, args...)
				var fresh []string
				for i := range perRound {
					n := len(ids) + i
					fresh = append(fresh, s.publish(fmt.Sprintf(`{"device":"d%d","ts":%d,"at":%d,"bytes":10}`, n%7, start.Unix()+int64(n), start.Unix()), "owner", "acme", "site", "berlin"))
				}
				some := 1 + rand.IntN(perRound/2)
				s.acknowledged(t, fmt.Sprintf("round %d: not all %d messages of the rounds before and %d of this one", round, len(ids), some), func() bool {
					return s.acks(ids) == len(ids) && s.acks(fresh) >= some
				})
				ids = append(ids, fresh...)
				_ = p.cmd.Process.Kill()
				_ = p.cmd.Wait()
				s.expireLeases()
			}
			p := startProcess(t, s, env, args...)
			s.acknowledged(t, "not all messages", func() bool { return s.acks(ids) == len(ids) })
			p.interrupt(t)
			stop()
			store, err := embedded.Open(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			tt.check(t, store, len(ids))
		})
	}
}

// interrupt ends the process as Ctrl-C does.
func (p *process) interrupt(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no SIGINT for other processes")
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var rest strings.Builder
	_, _ = p.out.WriteTo(&rest)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v\n%s", err, p.stderr)
	}
	return rest.String()
}

func checkPoints(t *testing.T, store *tsdb.Store, n int) {
	t.Helper()
	schema := tsdb.MustDefine("telemetry", tsdb.Key("site", "device"), codec.Records(), tsdb.SchemaOptions{})
	stored := map[int64]bool{}
	for d := range 7 {
		for p, err := range schema.For(store, acme).Range(tenant.NewContext(t.Context(), acme), tsdb.NewEntity("berlin", fmt.Sprint("d", d)), tsdb.AllTime()) {
			if err != nil {
				t.Fatal(err)
			}
			stored[p.Time.Unix()-start.Unix()] = true
		}
	}
	if len(stored) != n {
		t.Errorf("%d points are stored, want %d", len(stored), n)
	}
}

func checkCounts(t *testing.T, store *tsdb.Store, n int) {
	t.Helper()
	schema := tsdb.MustDefine("views", tsdb.Key("device"), codec.Records(), tsdb.SchemaOptions{})
	total, bytes := int64(0), 0.0
	for d := range 7 {
		one, sum := countsOf(t, schema.For(store, acme), fmt.Sprint("d", d))
		total, bytes = total+one, bytes+sum
	}
	if total != int64(n) || bytes != float64(10*n) {
		t.Errorf("%d messages with %v bytes are counted, want %d with %d", total, bytes, n, 10*n)
	}
}

// TestFlags: each mistake on the command line is reported with the flag.
func TestFlags(t *testing.T) {
	good := "-subscription " + subscription + " -dead-letters " + poison + " -route"
	for _, tt := range []struct {
		args, want string
	}{
		{"", "-subscription"},
		{"-subscription x", "projects/P/subscriptions/S"},
		{"-subscription " + subscription, "-dead-letters"},
		{"-subscription " + subscription + " -dead-letters " + poison, "-route"},
		{good + "=key=device", "-route: "},
		{good + "=dataset=x|key=device|time=arrival", "does not say the tenant"},
		{good + "=tenant=acme|dataset=x|key=device|time=arrival -max-messages 0", "-max-messages"},
		{good + "=tenant=acme|dataset=x|key=device|time=arrival -max-payload 99999999", "-max-payload"},
		{good + "=tenant=acme|dataset=x|key=device|time=arrival -max-bytes 10", "-max-bytes"},
		{good + "=tenant=acme|dataset=x|key=device|time=arrival -attributes a,,b", "-attributes"},
		{good + "=tenant=acme|dataset=x|key=device|time=arrival -keep soon", "-keep"},
		{good + "=tenant=acme|dataset=x|key=device|time=arrival -dir=", "-dir"},
		{good + "=tenant=acme|dataset=x|key=device|time=arrival -max-future -1s", "-max-future"},
		{good + "=tenant=acme|dataset=x|key=device|time=arrival -not-before soon", "-not-before"},
		{good + "=tenant=acme|dataset=x|key=device|time=arrival -cloud -dir x", "exclude"},
		{good + "=tenant=acme|dataset=x|key=device|time=arrival more", "unexpected argument"},
	} {
		var args []string
		for _, arg := range strings.Fields(tt.args) {
			args = append(args, strings.ReplaceAll(arg, "|", " "))
		}
		if _, err := parse(args, os.Stdout); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.args, err, tt.want)
		}
	}
}
