package tsdb_test

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
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var crashRounds = flag.Int("journal.crashes", 6, "how often a process with a journal is killed")

// journalChild is the environment variable with the folder of a child process, which writes through a journal until it
// is killed.
const (
	journalChild = "TIDEMARK_TEST_JOURNAL"
	journalRound = "TIDEMARK_TEST_JOURNAL_ROUND"
)

// writersOfChild is the number of writing goroutines of the child process.
const writersOfChild = 4

// TestJournalSurvivesCrashes kills a process at random moments while it writes through a journal, over a connection
// that loses every fifth response. In the end each acknowledged point is stored; of several writes of one point, the
// last one.
func TestJournalSurvivesCrashes(t *testing.T) {
	if overTCP() {
		t.Skip("the child process opens its own store in process")
	}
	if dir := os.Getenv(journalChild); dir != "" {
		journalProcess(t, dir)
		return
	}
	dir := t.TempDir()
	var acked [][]int // by round and goroutine: the last acknowledged point; all before it were acknowledged too
	for round := range *crashRounds {
		acked = append(acked, testkit.KillAcked(t, t.Name(), writersOfChild, journalChild+"="+dir, fmt.Sprintf("%s=%d", journalRound, round)))
		if round == *crashRounds-1 || rand.IntN(5) == 0 {
			checkAcked(t, dir, acked)
		}
	}
	total := 0
	for _, a := range acked {
		for _, n := range a {
			total += n
		}
	}
	t.Logf("%d crashes, %d points acknowledged", len(acked), total)
}

func crashStore(t *testing.T, dir string, opts ...grpc.DialOption) (*tsdb.Store, *tsdb.Schema[reading]) {
	t.Helper()
	server := must[*local.Server](t)(local.Open(engine.Options{Dir: filepath.Join(dir, "store")}))
	conn := must[*grpc.ClientConn](t)(server.Dial(append(tsdb.DialOptions(), opts...)...))
	client, admin, err := local.Clients(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	store := must[*tsdb.Store](t)(tsdb.New(client, tsdbtest.Table, tsdb.Options{Admin: admin, OnClose: func() error {
		return errors.Join(client.Close(), server.Close())
	}}))
	s := readings(t, tsdb.SchemaOptions{})
	if err := store.Ensure(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return store, s
}

// unreliable loses every fifth response to a bulk write, and lets each tenth fail before it has any effect.
func unreliable(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if !strings.HasSuffix(name, "/MutateRows") {
		return streamer(ctx, desc, cc, name, opts...)
	}
	lost := grpcstatus.Error(codes.Unavailable, "lost")
	roll := rand.IntN(10)
	if roll == 0 {
		return nil, lost
	}
	s, err := streamer(ctx, desc, cc, name, opts...)
	if err != nil || roll > 2 {
		return s, err
	}
	return &hooked{s, func(any) error { return lost }}, nil
}

// journalProcess writes until it is killed.
func journalProcess(t *testing.T, dir string) {
	round := must[int](t)(strconv.Atoi(os.Getenv(journalRound)))
	store, s := crashStore(t, dir, grpc.WithChainStreamInterceptor(unreliable))
	w := must[*tsdb.Writer](t)(store.NewWriter(tsdb.WriterOptions{BufferPoints: 300, Journal: tsdb.JournalOptions{Dir: filepath.Join(dir, "journal")}}))
	in := s.For(store, acme).Via(w)
	var goroutines sync.WaitGroup
	for g := range writersOfChild {
		goroutines.Go(func() {
			for n := 1; ; {
				var pts []tsdb.Point[reading]
				for range 1 + rand.IntN(50) {
					pts = append(pts, crashPoint(round, g, n), lastPoint(round, g, n))
					n++
				}
				if _, err := in.EnqueueMany(context.Background(), pts); err != nil {
					t.Error(err)
					return
				}
				testkit.Acked(g, n-1)
			}
		})
	}
	goroutines.Wait()
}

// crashPoint is point n of a goroutine in a round; lastPoint is a point that each n overwrites.
func crashPoint(round, g, n int) tsdb.Point[reading] {
	return tsdb.Point[reading]{Entity: tsdb.NewEntity(fmt.Sprintf("r%d", round), fmt.Sprintf("g%d", g)), Time: start.Add(time.Duration(n) * time.Millisecond), Value: reading{float64(n)}}
}

func lastPoint(round, g, n int) tsdb.Point[reading] {
	return tsdb.Point[reading]{Entity: tsdb.NewEntity("last", fmt.Sprintf("g%d", g)), Time: start, Value: reading{float64(round)*1e9 + float64(n)}}
}

// checkAcked delivers the rest of the journal, and checks that every acknowledged point is stored.
func checkAcked(t *testing.T, dir string, acked [][]int) {
	t.Helper()
	store, s := crashStore(t, dir)
	defer store.Close()
	w := must[*tsdb.Writer](t)(store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: filepath.Join(dir, "journal")}}))
	if dead := letters(t, w); len(dead) > 0 {
		t.Errorf("%d dead letters: %+v", len(dead), dead[0])
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	repo := s.For(store, acme)
	for round, last := range acked {
		for g, n := range last {
			seen := 0
			for p, err := range repo.Range(t.Context(), crashPoint(round, g, 0).Entity, tsdb.AllTime(), tsdb.OldestFirst) {
				if err != nil {
					t.Fatal(err)
				}
				if seen++; seen <= n && p.Value.TempC != float64(seen) {
					t.Fatalf("round %d, goroutine %d: point %d is missing; %d were acknowledged", round, g, seen, n)
				}
			}
			if seen < n {
				t.Fatalf("round %d, goroutine %d: %d points are stored; %d were acknowledged", round, g, seen, n)
			}
		}
	}
	for g := range writersOfChild {
		round := len(acked) - 1
		for round >= 0 && acked[round][g] == 0 { // the process was killed before this goroutine's first acknowledgement
			round--
		}
		if round < 0 {
			continue
		}
		last := lastPoint(round, g, acked[round][g])
		p, err := repo.Get(t.Context(), last.Entity, start)
		if err != nil || p.Value.TempC < last.Value.TempC {
			t.Errorf("goroutine %d: the overwritten point is %v (%v); write %d of round %d was acknowledged", g, p.Value, err, acked[round][g], round)
		}
	}
}
