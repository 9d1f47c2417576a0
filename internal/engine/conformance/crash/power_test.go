package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// TestPowerLoss checks that a machine that fails loses no acknowledged write: it may lose any unsynced data, and
// acknowledged writes are synced.
func TestPowerLoss(t *testing.T) {
	testkit.Plain(t)
	r := rand.New(rand.NewPCG(*seed, 5))
	fs, book := vfs.NewCrashableMem(), newLedger()
	for n := range *rounds {
		o := options("data")
		o.FS = fs
		eng, err := engine.Open(o)
		if err != nil {
			t.Fatalf("round %d: opening the store: %v", n, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		tbl, disconnect, err := connect(ctx, eng)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var lines []string
		done := make(chan error)
		go func() {
			done <- write(ctx, tbl, uint64(n+1)*10_000_000, func(format string, args ...any) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, fmt.Sprintf(format, args...))
			})
		}()
		time.Sleep(time.Duration(10+r.IntN(150)) * time.Millisecond)
		mu.Lock()
		answered := len(lines)
		mu.Unlock()
		// A random part of the unsynced data survives: more in some rounds, none in others.
		left := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[r.IntN(3)], RNG: r})
		cancel()
		if err := <-done; err != nil {
			t.Errorf("round %d: write: %v", n, err)
		}
		disconnect()
		if err := eng.Close(); err != nil {
			t.Errorf("round %d: Close: %v", n, err)
		}
		for i, line := range lines {
			// A write that was acknowledged after the failure may be lost. One that was only tried may be stored.
			if i < answered || strings.HasPrefix(line, "try ") {
				if err := book.enter(line); err != nil {
					t.Error(err)
				}
			}
		}
		fs = left
		o.FS = fs
		verify(t, o, book)
		if t.Failed() {
			t.Fatalf("failed in round %d of -crash.seed=%d", n, *seed)
		}
	}
}
