package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/faultdisk"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// What a reader has seen is there after a loss of power, and so is what a writer was told.
func TestPowerLossKeepsWhatWasSeen(t *testing.T) {
	seen := 0
	for round := 0; round < 60; round += testkit.Stride(6) {
		d := faultdisk.New()
		for life := range 4 {
			d = losePower(t, d, uint64(4*round+life), life == 0, &seen)
		}
	}
	if seen == 0 {
		t.Error("nothing was seen before a loss of power")
	}
}

func losePower(t *testing.T, d *faultdisk.Disk, seed uint64, first bool, total *int) *faultdisk.Disk {
	t.Helper()
	const keys, writers, readers = 3, 3, 3
	rnd := rand.New(rand.NewPCG(seed, 1))
	e, err := engine.Open(engine.Options{FS: d, GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	if first {
		createTable(t, e)
	}
	if seed%2 == 1 {
		d.Slow(time.Millisecond)
	}
	var next atomic.Int64
	next.Store(int64(seed) * 1e6)
	var off atomic.Bool // nobody hears answers from then on
	var seen [keys]atomic.Int64
	hear := func(key int, value int64) {
		for old := seen[key].Load(); !off.Load() && value > old && !seen[key].CompareAndSwap(old, value); old = seen[key].Load() {
		}
	}
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for !off.Load() {
				n := next.Add(1)
				muts := setting("q", strconv.FormatInt(n, 10))
				muts[0].GetSetCell().TimestampMicros = n * 1000
				if _, err := write(fmt.Sprint("key", w), muts)(context.Background(), e); err == nil {
					hear(w, n)
				}
			}
		})
	}
	for range readers {
		group.Go(func() {
			for i := 0; !off.Load(); i++ {
				q := readOf(rowsOf(fmt.Sprint("key", i%keys)), nil)
				if i%4 == 3 {
					q = readOf(nil, nil)
				}
				got, err := q(context.Background(), e)
				if err != nil || off.Load() {
					return
				}
				for _, pair := range strings.Fields(got) {
					key, value := pair[3]-'0', pair[strings.IndexByte(pair, '=')+1:]
					if n, err := strconv.ParseInt(value, 10, 64); err == nil {
						hear(int(key), n)
					}
				}
			}
		})
	}
	time.Sleep(time.Duration(rnd.IntN(4000)) * time.Microsecond)
	off.Store(true)
	var want [keys]int64
	for i := range want {
		want[i] = seen[i].Load()
	}
	left := d.Lose([]int{0, 50, 100}[rnd.IntN(3)], rnd)
	d.Slow(0)
	group.Wait()
	_ = e.Close()
	again := left.Lose(0, rnd) // the engine that checks changes another copy
	after, err := engine.Open(engine.Options{FS: again, GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	for i, n := range want {
		got, err := readOf(rowsOf(fmt.Sprint("key", i)), nil)(t.Context(), after)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			*total++
		}
		if n > 0 && !strings.Contains(" "+got+" ", fmt.Sprintf("key%d=%d ", i, n)) {
			t.Errorf("seed %d: after the loss of power, key %d lacks the value %d that was seen", seed, i, n)
		}
	}
	return left
}
