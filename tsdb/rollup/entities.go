package rollup

import (
	"context"
	"errors"
	"iter"
	"math"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tsdb"
)

// A rebuild has two halves: entities that have points, then entities that have only rows of the rollup.
// Rebuilt.Resume holds the half and the last path.
const (
	resumePoints = "points "
	resumeRows   = "rows "
)

// entities returns the entities below a prefix that a rebuild visits after resume.
func (l *level[T]) entities(ctx context.Context, p tsdb.Prefix, resume string) iter.Seq2[Rebuilt, error] {
	return func(yield func(Rebuilt, error) bool) {
		after, inRows := strings.CutPrefix(resume, resumeRows)
		if !inRows {
			var ok bool
			if after, ok = strings.CutPrefix(resume, resumePoints); !ok && resume != "" {
				yield(Rebuilt{}, invalid.New(ErrInvalid, "Resume", invalid.Quote(resume), "a Rebuilt.Resume of an earlier rebuild"))
				return
			}
			last := entityAt(after)
			for e, err := range l.repo.Entities(ctx, p) {
				if err == nil && after != "" && e.Compare(last) <= 0 {
					continue
				}
				if !yield(Rebuilt{Entity: e, Resume: resumePoints + inside.PathOf(e)}, err) || err != nil {
					return
				}
			}
			after = ""
		}
		under := l.at.Rows.Under(inside.PathOf(p))
		for path, err := range l.paths(ctx, under, after) {
			e := entityAt(path)
			if err == nil {
				if _, err = l.repo.Latest(ctx, e); err == nil {
					continue // visited in the first half
				}
				if _, undecoded := errors.AsType[*tsdb.PointError](err); undecoded {
					continue
				}
				if errors.Is(err, tsdb.ErrNotFound) {
					err = nil
				}
			}
			if !yield(Rebuilt{Entity: e, Resume: resumeRows + path}, err) || err != nil {
				return
			}
		}
	}
}

// paths returns the entities after a path that have rows of the rollup in ranges. It sends one request per entity.
func (l *level[T]) paths(ctx context.Context, ranges []rowkey.Range, after string) iter.Seq2[string, error] {
	filter := bigtable.ChainFilters(bigtable.CellsPerRowLimitFilter(1), bigtable.StripValueFilter())
	return func(yield func(string, error) bool) {
		for _, rng := range ranges {
			if after != "" {
				behind := l.at.Rows.Entity(after, 0, math.MaxInt64).Limit
				switch {
				case behind >= rng.Limit:
					continue
				case behind > rng.Start:
					rng.Start = behind
				}
			}
			for !rng.Empty() {
				found := ""
				err := l.scan(ctx, rng, filter, 1, false, func(row *bt.Row) (bool, error) {
					found = row.Key()
					return true, nil
				})
				if err != nil {
					yield("", err)
					return
				}
				if found == "" {
					break
				}
				path, _, ok := l.at.Rows.Split(found)
				if !ok {
					rng = rng.After(found)
					continue
				}
				if !yield(path, nil) {
					return
				}
				rng.Start = l.at.Rows.Entity(path, 0, math.MaxInt64).Limit
			}
		}
	}
}
