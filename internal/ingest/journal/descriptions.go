package journal

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// Descriptions are texts that a journal stores next to its records, each with a kind and a number. Records refer to
// descriptions by number. They are never removed. It is safe for concurrent use.
type Descriptions struct {
	spool   *spool.Spool
	writing sync.Mutex // held while a description is written
	given   uint64     // greater than the numbers of descriptions that were written, perhaps not yet on disk
}

// Description is one text. All kinds of a journal share one sequence of numbers.
type Description struct {
	Kind   string
	Number uint64
	Text   []byte
}

// Name returns the name under which the journal stores the description.
func (d Description) Name() string { return d.Kind + "/" + strconv.FormatUint(d.Number, 10) }

// All returns the descriptions, in no order.
func (d *Descriptions) All() iter.Seq[Description] {
	return func(yield func(Description) bool) {
		for name, text := range d.spool.Metas() {
			kind, digits, _ := strings.Cut(name, "/")
			n, err := strconv.ParseUint(digits, 10, 64)
			if err == nil && !yield(Description{kind, n, text}) {
				return
			}
		}
	}
}

// Number returns the number of a description, and writes the description if it does not exist.
func (d *Descriptions) Number(ctx context.Context, kind string, text []byte) (uint64, error) {
	d.writing.Lock()
	defer d.writing.Unlock()
	next, full := Description{Kind: kind, Number: d.given}, false
	for have := range d.All() {
		if have.Kind == kind && string(have.Text) == string(text) {
			return have.Number, nil
		}
		full = full || have.Number == math.MaxUint64
		next.Number = max(next.Number, have.Number+1)
	}
	if full {
		return 0, fmt.Errorf("the journal has no number left for a description of kind %s: another one has the largest", kind)
	}
	d.given = next.Number + 1
	return next.Number, d.spool.SetMeta(ctx, next.Name(), text)
}
