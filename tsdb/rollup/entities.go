package rollup

import (
	"context"
	"errors"
	"iter"
	"math"
	"strings"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Entities returns the entities below a prefix that have a visible row of the rollup, or all of the tenant for
// tsdb.AllEntities, as a sequence. tsdb.PrefixReader.Entities returns those that have points; the two differ for
// rollups of events that are not stored as points. Rows hold several buckets. A row counts until its last bucket has
// expired, and also if it holds no bucket with numbers.
//
// The order is that of tsdb.Entity.Compare, or in a salted dataset that order within each salt. Each loop reads from
// the table; leaving the loop ends the read. An error is the last pair: tsdb.ErrInvalid for the zero Prefix, or one
// that no entity of the dataset can have.
//
// It costs a request for each 1,000 rows, and one for each entity with 8 rows or more, of which the others are skipped;
// the service sends no values. The scan timeout bounds the whole loop, including the time that the loop's body takes.
func (r *Reader[T]) Entities(ctx context.Context, p tsdb.Prefix) iter.Seq2[tsdb.Entity, error] {
	return sequence(ctx, r, telemetry.RollupEntities, func(ctx context.Context, yield func(tsdb.Entity, error) bool) error {
		l, ranges, err := r.below(ctx, p)
		if err != nil {
			return err
		}
		ctx, cancel := l.table.Bound(ctx, true)
		defer cancel()
		for path, err := range l.paths(ctx, ranges, "", l.oldest(l.in.Clock())) {
			if err != nil || !yield(entityAt(path), nil) {
				return err
			}
		}
		return nil
	})
}

// below returns the level to read and the ranges of its rows below a prefix.
func (r *Reader[T]) below(ctx context.Context, p tsdb.Prefix) (*level[T], []rowkey.Range, error) {
	l, err := r.level(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	if p == (tsdb.Prefix{}) {
		return nil, nil, invalid.New(tsdb.ErrInvalid, "prefix", "empty", "at least one part, or AllEntities")
	}
	path := inside.Of(p).Path()
	if err := l.in.Space.CheckPrefix(path); err != nil {
		return nil, nil, err
	}
	return l, l.at.Rows.Under(path), nil
}

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
				yield(Rebuilt{}, invalid.New(tsdb.ErrInvalid, "Resume", invalid.Quote(resume), "a Rebuilt.Resume of an earlier rebuild"))
				return
			}
			last := entityAt(after)
			for e, err := range l.repo.Under(p).Entities(ctx, tsdb.AllTime()) {
				if err == nil && after != "" && e.Compare(last) <= 0 {
					continue
				}
				if !yield(Rebuilt{Entity: e, Resume: resumePoints + inside.Of(e).Path()}, err) || err != nil {
					return
				}
			}
			after = ""
		}
		under := l.at.Rows.Under(inside.Of(p).Path())
		for path, err := range l.paths(ctx, under, after, 0) {
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

// pageRows is how many rows a request for entities returns, and mostOfOne how many of one entity it reads before it
// skips the others.
const (
	pageRows  = 1000
	mostOfOne = 8
)

// paths returns the entities after a path that have rows of the rollup in ranges, the newest of which ends after
// oldest.
func (l *level[T]) paths(ctx context.Context, ranges []rowkey.Range, after string, oldest int64) iter.Seq2[string, error] {
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
			for last := ""; !rng.Empty(); {
				var page []string
				rows, ofLast, rest := 0, 0, rng
				rest.Start = rest.Limit
				err := l.scan(ctx, rng, bt.KeysOnly(), pageRows, false, func(row *bt.Row) (bool, error) {
					if rows++; rows == pageRows {
						rest = rng.After(row.Key())
					}
					path, start, ok := l.at.Rows.Split(row.Key())
					if !ok {
						return true, nil
					}
					if path != last {
						last, ofLast = path, 0
						if start+l.entry.Span > oldest { // the newest row is the first one
							page = append(page, path)
						}
					}
					if ofLast++; ofLast == mostOfOne {
						rest = rng
						rest.Start = l.at.Rows.Entity(path, 0, math.MaxInt64).Limit
					}
					return ofLast < mostOfOne, nil
				})
				if err != nil {
					yield("", err)
					return
				}
				for _, path := range page {
					if !yield(path, nil) {
						return
					}
				}
				rng = rest
			}
		}
	}
}
