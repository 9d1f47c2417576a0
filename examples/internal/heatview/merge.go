// Package heatview shows recordings of tsdb/heatmap: as a page, and as findings, which are what a table cannot spread
// over its servers. It merges recordings.
package heatview

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
)

// Of returns what a recorder has recorded until now.
func Of(r *heatmap.Recorder) *heat.Recording { return heat.Of(r.Recording()) }

// Load reads recordings from files as one. The error matches heat.ErrDamaged or heat.ErrVersion, or is the system's.
func Load(names ...string) (*heat.Recording, error) {
	var all []*heat.Recording
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		r, err := heat.Read(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, r)
	}
	return Merge(all...)
}

// Merge returns one recording of several, such as those of all processes that use a table, or of one process after
// another. Columns get the width of the widest, and where there would be more than 256 they are joined in pairs. The
// clocks of the processes decide which columns belong together. It refuses ranks in place of names, because ranks of
// different recordings have no common meaning, and widths that are not multiples of each other by a power of two.
func Merge(recordings ...*heat.Recording) (*heat.Recording, error) {
	out := new(heat.Recording)
	rnd := rand.New(rand.NewPCG(1, 2)) // the same recordings give the same result
	n := 0
	for _, r := range recordings {
		if len(r.List()) == 0 {
			continue
		}
		if n++; n == 1 {
			*out = *r
			out.Columns = r.Columns.Clone()
			continue
		}
		if out.Ranked || r.Ranked {
			return nil, errors.New("a recording has ranks in place of names, and those of two recordings do not match")
		}
		if err := merge(out, r, rnd); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func merge(r, o *heat.Recording, rnd *rand.Rand) error {
	other := o.Columns
	if other.Width < r.Columns.Width {
		other = other.Clone()
	}
	for r.Columns.Width < other.Width {
		r.Columns.Widen(rnd)
	}
	for other.Width < r.Columns.Width {
		other.Widen(rnd)
	}
	if r.Columns.Width != other.Width {
		return fmt.Errorf("the columns are %v and %v wide; want widths that differ by a power of two", r.Columns.Width, other.Width)
	}
	for _, col := range other.List {
		r.Columns.Find(col.ID).Join(col, rnd)
	}
	for r.Columns.Span() > heat.MostColumns {
		r.Columns.Widen(rnd)
	}
	if o.First.Before(r.First) {
		r.First = o.First
	}
	if o.Last.After(r.Last) {
		r.Last = o.Last
	}
	return nil
}
