package rollup_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

var addCrashes = flag.Int("rollup.crashes", 5, "how often a process that adds events is killed")

// addChild names the environment variable with the folder of a process that adds events until it is killed.
const (
	addChild = "TIDEMARK_TEST_ADD"
	addRound = "TIDEMARK_TEST_ADD_ROUND"
)

// addersOfChild is how many goroutines of the process add events.
const addersOfChild = 3

// TestStreamSurvivesCrashes kills a process at random moments while it adds events over a connection that loses every
// fifth response. Each acknowledged event counts, and none counts twice. The events of a goroutine are 0, 1, 2, …,
// and the row must have the first n of them.
func TestStreamSurvivesCrashes(t *testing.T) {
	if os.Getenv("TIDEMARK_TEST_TCP") != "" {
		t.Skip("the child process opens its own store in process")
	}
	if dir := os.Getenv(addChild); dir != "" {
		addProcess(t, dir)
		return
	}
	dir := t.TempDir()
	var acked [][]int
	for round := range *addCrashes {
		acked = append(acked, testkit.KillAcked(t, t.Name(), addersOfChild, addChild+"="+dir, fmt.Sprintf("%s=%d", addRound, round)))
		if round == *addCrashes-1 || rand.IntN(4) == 0 {
			checkAdded(t, dir, acked)
		}
	}
	t.Logf("acknowledged: %v", acked)
}

type number struct{ N float64 }

func addCrashStore(t *testing.T, dir string, opts ...grpc.DialOption) (*tsdb.Store, *rollup.Rollup[number], *tsdb.Repository[number]) {
	t.Helper()
	server, err := local.Open(engine.Options{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := server.Dial(append(tsdb.DialOptions(), opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	client, admin, err := local.Clients(context.Background(), conn)
	if err != nil {
		t.Fatal(err)
	}
	store, err := tsdb.New(client, tsdbtest.Table, tsdb.Options{Admin: admin, OnClose: func() error {
		return errors.Join(client.Close(), server.Close())
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := rollup.MustDefine("day", window.Days(1), []rollup.Measure[number]{
		{Name: "n", Of: func(v number) (float64, bool) { return v.N, true }, Max: 1 << 40},
	}, rollup.Options{Mode: rollup.ByStream})
	s := tsdb.MustDefine("events", tsdb.Key("round", "adder"), codec.JSON[number](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{r}})
	if err := store.Ensure(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	return store, r, s.For(store, acme)
}

// addUnreliable loses every fifth response to an addition, and lets each tenth fail before it has any effect.
func addUnreliable(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	lost := status.Error(codes.Unavailable, "lost")
	roll := rand.IntN(10)
	if !strings.HasSuffix(method, "/CheckAndMutateRow") || roll > 2 {
		return invoker(ctx, method, req, reply, cc, opts...)
	}
	if roll == 0 {
		return lost
	}
	_ = invoker(ctx, method, req, reply, cc, opts...)
	return lost
}

// addProcess adds until it is killed.
func addProcess(t *testing.T, dir string) {
	round, err := strconv.Atoi(os.Getenv(addRound))
	if err != nil {
		t.Fatal(err)
	}
	store, r, repo := addCrashStore(t, dir, grpc.WithChainUnaryInterceptor(addUnreliable))
	w, err := store.NewWriter(tsdb.WriterOptions{BufferPoints: 300, Journal: tsdb.JournalOptions{Dir: filepath.Join(dir, "journal")}})
	if err != nil {
		t.Fatal(err)
	}
	in := rollup.NewAdder(r, repo, w)
	var goroutines sync.WaitGroup
	for g := range addersOfChild {
		goroutines.Go(func() {
			for n := 0; ; {
				var events []tsdb.Point[number]
				for range 1 + rand.IntN(50) {
					events = append(events, tsdb.Point[number]{Entity: adderOf(round, g), Time: start, Value: number{float64(n)}})
					n++
				}
				if _, err := in.AddMany(context.Background(), events); err != nil {
					t.Error(err)
					return
				}
				testkit.Acked(g, n)
			}
		})
	}
	goroutines.Wait()
}

func adderOf(round, g int) tsdb.Entity {
	return tsdb.NewEntity(fmt.Sprintf("r%d", round), fmt.Sprintf("g%d", g))
}

// checkAdded delivers the rest of the journal, and compares the rows with the acknowledged events.
func checkAdded(t *testing.T, dir string, acked [][]int) {
	t.Helper()
	store, r, repo := addCrashStore(t, dir)
	defer store.Close()
	w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: filepath.Join(dir, "journal")}})
	if err != nil {
		t.Fatal(err)
	}
	if n := w.Stats().Journal.DeadLetters; n > 0 {
		t.Errorf("%d dead letters, want 0", n)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for round, last := range acked {
		for g, n := range last {
			b, err := rollup.For(r, repo).Total(t.Context(), adderOf(round, g), tsdb.Between(start.Add(-24*time.Hour), start.Add(24*time.Hour)))
			if err != nil {
				t.Fatal(err)
			}
			if b.Points == 0 && n == 0 {
				continue // the process was killed before its first acknowledgement
			}
			if b.Points < int64(n) || len(b.Values) != 1 {
				t.Fatalf("round %d, adder %d: %d events are counted, %d were acknowledged", round, g, b.Points, n)
			}
			if v, c := b.Values[0], float64(b.Points); v.Count != b.Points || v.Sum != c*(c-1)/2 || v.Min != 0 || v.Max != c-1 {
				t.Errorf("round %d, adder %d: %d events are counted, and %d numbers of the sum %v, up to %v: want the first %d numbers once each", round, g, b.Points, v.Count, v.Sum, v.Max, b.Points)
			}
		}
	}
}
