package crash

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

var (
	rounds = flag.Int("crash.rounds", 5, "how often the writing process is killed, and how often the machine fails")
	seed   = flag.Uint64("crash.seed", 1, "when that is, and what is damaged")
)

// childDir and childStart turn the test binary into a writing process. childDir and faultsSeed turn it into one with
// faults.
const (
	childDir   = "TIDEMARK_CRASH_DIR"
	childStart = "TIDEMARK_CRASH_START"
	faultsSeed = "TIDEMARK_CRASH_FAULTS"
)

// faultyChild runs the process with faults. It is nil on systems without them.
var faultyChild func(dir string) error

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		run := child
		if os.Getenv(faultsSeed) != "" {
			run = faultyChild
		}
		if err := run(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// options make the engine flush, compact and collect all the time.
func options(dir string) engine.Options {
	return engine.Options{Dir: dir, MemTableBytes: 256 << 10, GCInterval: 20 * time.Millisecond}
}

// child writes until it is killed.
func child(dir string) error {
	start, err := strconv.ParseUint(os.Getenv(childStart), 10, 64)
	if err != nil {
		return err
	}
	eng, err := engine.Open(options(dir))
	if err != nil {
		return err
	}
	ctx := context.Background()
	tbl, _, err := connect(ctx, eng)
	if err != nil {
		return err
	}
	// One write for each line: a pipe transfers it completely or not at all.
	return write(ctx, tbl, start, func(format string, args ...any) {
		fmt.Fprintf(os.Stdout, format+"\n", args...)
	})
}

// TestKill checks that a process that is killed at any moment loses no acknowledged write and leaves no half row. It
// tests the log and its recovery; TestPowerLoss tests the loss of unsynced data.
func TestKill(t *testing.T) {
	if testing.Short() && *rounds == 5 {
		*rounds = 2
	}
	dir, book := t.TempDir(), newLedger()
	r := rand.New(rand.NewPCG(*seed, 3))
	for n := range *rounds {
		// sometimes while the store opens
		after := time.Duration(20+r.IntN(400)) * time.Millisecond
		if r.IntN(8) == 0 {
			after = time.Duration(r.IntN(30)) * time.Millisecond
		}
		testkit.KillAfter(t, after, book.enter, childDir+"="+dir, fmt.Sprintf("%s=%d", childStart, uint64(n+1)*10_000_000))
		verify(t, options(dir), book)
		if t.Failed() {
			t.Fatalf("failed in round %d of -crash.seed=%d", n, *seed)
		}
	}
	t.Logf("%d rounds: %d lines of report, %d rows, %d deletions, %d conditional inserts, %d sums", *rounds, book.lines,
		len(book.rows), len(book.gone), len(book.first), len(book.added))
}

// verify opens the store and compares it with the ledger.
func verify(t *testing.T, o engine.Options, book *ledger) {
	t.Helper()
	eng, err := engine.Open(o)
	if err != nil {
		t.Fatalf("opening the store after a crash: %v", err)
	}
	tbl, disconnect, err := connect(t.Context(), eng)
	if err != nil {
		t.Fatalf("opening the table after a crash: %v", err)
	}
	book.check(t, t.Context(), tbl)
	book.replay(t, t.Context(), tbl)
	book.check(t, t.Context(), tbl)
	disconnect()
	if err := eng.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
