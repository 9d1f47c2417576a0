package dynamic

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Point is a stored point. The zero Point is invalid.
type Point struct {
	Entity tsdb.Entity
	Time   time.Time
	ID     string // in a dataset whose points have an identity; else empty
	// Class is the point's retention class. Tag is the tag of the payload's codec.
	Class, Tag string
	// Payload is the encoded value.
	Payload []byte
	// Err says that the payload has a tag that the catalogue does not know. Class, Tag and Payload are empty then.
	Err error
}

var errEnough = errors.New("dynamic: enough")

// Points returns an iterator over the visible points of an entity in an interval, newest first. An error is the last
// pair. It costs a request for every 1,000 rows; leaving the loop ends the current one. It is bounded by ctx, and
// each request by the scan timeout.
func (v *View) Points(ctx context.Context, e tsdb.Entity, in tsdb.Interval) iter.Seq2[Point, error] {
	return func(yield func(Point, error) bool) {
		if err := v.read(ctx, e, in, func(p Point) bool { return yield(p, nil) }); err != nil {
			yield(Point{}, err)
		}
	}
}

func (v *View) read(ctx context.Context, e tsdb.Entity, in tsdb.Interval, visit func(Point) bool) error {
	if err := v.check(); err != nil {
		return err
	}
	if e == (tsdb.Entity{}) { // the core would read all entities
		_, err := v.Entity(nil)
		return err
	}
	if err := inside.Of(in).Check(); err != nil {
		return err
	}
	s := points.Selection{Entity: inside.Of(e).Path()}
	if s.Oldest, s.Newest = inside.Of(in).Units(v.unit); s.Oldest > s.Newest {
		return nil
	}
	err := v.points.Read(ctx, s, func(p points.RawPoint) error {
		if !visit(Point{e, v.unit.Time(p.Units), p.ID, p.Class, p.Tag, bytes.Clone(p.Payload), p.Unread}) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// Put stores a point in its class, with its tag, as a repository's Put does, including rollup marks, heads and
// merging. Put does not decode the payload: the caller must make sure that it fits the tag. The error is a
// *tsdb.WriteError.
func (v *View) Put(ctx context.Context, p Point) error {
	err := v.check()
	var units int64
	if err == nil {
		units, err = v.unit.WrittenUnits(p.Time)
	}
	if err != nil {
		return &tsdb.WriteError{Outcome: tsdb.Outcome{State: tsdb.Rejected, Err: err}}
	}
	out := v.points.Write(ctx, []points.RawPoint{{Path: inside.Of(p.Entity).Path(), Units: units, ID: p.ID, Class: p.Class, Tag: p.Tag, Payload: p.Payload}}, false)[0]
	if out.State == bt.Stored {
		return nil
	}
	return &tsdb.WriteError{Outcome: tsdb.Outcome{State: tsdb.State(out.State), Attempts: out.Attempts, Err: out.Err}}
}
