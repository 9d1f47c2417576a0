package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// Each byte of small points is written at most six times, log, flushes and merges together: otherwise the rate of a
// long load falls to what merging leaves over. Devices write in turn, so each memtable overlaps all files. Memtables
// are a 64th of the usual size, so that this is a load of five million points in small. Merging always keeps up, which
// costs most.
func TestWriteAmplification(t *testing.T) {
	testkit.Plain(t)
	const (
		devices = 1000
		points  = 80_000
		batch   = 1000
		want    = 6 // Snappy, which Pebble takes on arm64, writes a little more
	)
	inBubble(t, engine.Options{MemTableBytes: 256 << 10, NoSync: true}, func(t *testing.T, r *rig) {
		r.create(t)
		tbl := r.data.Open(tableID)
		rnd := rand.New(rand.NewPCG(1, 2))
		bytes := 0
		keys, muts := make([]string, batch), make([]*bigtable.Mutation, batch)
		for from := 0; from < points; from += batch {
			for i := range batch {
				n := from + i
				ms := int64(1_700_000_000_000 + n)
				payload := fmt.Appendf(nil, `{"temp_c":%.1f,"humidity":%d}`, 15+10*rnd.Float64(), rnd.IntN(100))
				keys[i] = fmt.Sprintf("acme#readings#berlin#device-%04d#%019d", n%devices, int64(1<<63-1)-ms*1_000_000)
				muts[i] = bigtable.NewMutation()
				muts[i].Set("f", "p:json", bigtable.Timestamp(ms*1000), payload)
				bytes += len(keys[i]) + len(payload)
			}
			if errs, err := tbl.ApplyBulk(r.ctx, keys, muts); err != nil || errs != nil {
				t.Fatal(err, errs)
			}
			synctest.Wait() // until flushes and merges have ended
		}
		got := float64(r.BytesWritten()) / float64(bytes)
		t.Logf("%.2f bytes written per byte of key and payload", got)
		if got > want {
			t.Errorf("got %.2f bytes written per byte of key and payload, want at most %d", got, want)
		}
	})
}
