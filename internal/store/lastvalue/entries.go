package lastvalue

import (
	"iter"
	"math"

	"github.com/maypok86/otter/v2"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// entries are the methods of an otter.Cache that Cache calls. It names no type of otter: these are generic, and the
// compiler would compile all of them again for each package that uses a tsdb.Store.
type entries interface {
	GetIfPresent(id rowkey.ID) (*Newest, bool)
	Set(id rowkey.ID, n *Newest) (*Newest, bool)
	Invalidate(id rowkey.ID) (*Newest, bool)
	InvalidateAll()
	Keys() iter.Seq[rowkey.ID]
	CleanUp()
	EstimatedSize() int
	WeightedSize() uint64
	StopAllGoroutines() bool
	// known returns the entry of an entity without counting this as a use.
	known(id rowkey.ID) *Newest
}

type otterEntries struct {
	*otter.Cache[rowkey.ID, *Newest]
}

func newEntries(o Options) entries {
	least := o.Bytes / int64(o.Entries) // computed for the smallest entry, so that the bound in bytes also bounds the entries
	return otterEntries{otter.Must(&otter.Options[rowkey.ID, *Newest]{
		MaximumWeight: uint64(o.Bytes),
		Weigher: func(id rowkey.ID, n *Newest) uint32 {
			return uint32(min(max(1, least, int64(id.Len()+n.bytes())), math.MaxUint32))
		},
		ExpiryCalculator: otter.ExpiryWriting[rowkey.ID, *Newest](o.MaxAge),
		Executor:         func(f func()) { f() },
	})}
}

func (e otterEntries) known(id rowkey.ID) *Newest {
	found, ok := e.GetEntryQuietly(id)
	if !ok {
		return nil
	}
	return found.Value
}
