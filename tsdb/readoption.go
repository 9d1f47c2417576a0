package tsdb

import (
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

// ReadOption changes how one call reads the newest points of entities: a Concurrency, a Hedge or a MaxStale. Without any, the
// defaults of each apply.
type ReadOption interface {
	applyToRead(points.Options) points.Options
}

const (
	defaultWidth = 128
	maxWidth     = 1000
)

// Concurrency is a ReadOption: how many requests a call has under way at once, at most. Concurrency(0) is the default, 128: each is a
// read of a row or a few, which waits for the network far longer than it works, and the official client spreads them over
// ten connections, of which each takes a hundred. Below 0 and above 1000 are refused with ErrInvalid.
type Concurrency int

func (w Concurrency) applyToRead(o points.Options) points.Options {
	o.Width = int(w)
	return o
}

// Hedge is a ReadOption: it sends a second request for a read that takes long, takes the answer that comes first, and
// cancels the other. It takes the tail off a service that is now and then slow, and helps nothing against one that is slow
// altogether. The zero Hedge is off, the default.
type Hedge struct {
	// After is how long a read may take until the second request: about what all but a few in a hundred take. Above 0.
	After time.Duration
	// MaxRatio of the reads, above 0 and up to 1, may be sent twice, so that a service in trouble does not get twice the
	// load. It is reckoned over all calls of the store: a share that was not used is kept for later, up to 100 requests.
	MaxRatio float64
}

func (h Hedge) applyToRead(o points.Options) points.Options {
	o.Hedge = points.Hedge(h)
	return o
}

// readOptionsOf resolves the options of a call. Of two of one kind the last counts.
func readOptionsOf(opts []ReadOption) (o points.Options, err error) {
	for i, opt := range opts {
		if opt == nil {
			return o, invalid.New(ErrInvalid, "read option "+strconv.Itoa(i), "nil", "Concurrency, Hedge or MaxStale")
		}
		o = opt.applyToRead(o)
	}
	switch h := o.Hedge; {
	case o.Width < 0 || o.Width > maxWidth:
		return o, invalid.New(ErrInvalid, "Concurrency", strconv.Itoa(o.Width), "0 for the default, or 1 to "+strconv.Itoa(maxWidth))
	case o.Stale < 0:
		return o, invalid.New(ErrInvalid, "MaxStale", o.Stale.String(), "0 for the table, or more")
	case !h.On():
	case h.After <= 0:
		return o, invalid.New(ErrInvalid, "Hedge.After", h.After.String(), "more than 0")
	case !(h.MaxRatio > 0 && h.MaxRatio <= 1):
		return o, invalid.New(ErrInvalid, "Hedge.MaxRatio", strconv.FormatFloat(h.MaxRatio, 'g', -1, 64), "above 0, up to 1")
	}
	if o.Width == 0 {
		o.Width = defaultWidth
	}
	return o, nil
}
