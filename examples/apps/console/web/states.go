package web

import (
	"errors"
	"net/http"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// maxBands is how many bands an answer has at most: two for each column.
const maxBands = 2 * maxColumns

// band is a time in which an entity was in one state.
type band struct {
	From  float64 `json:"from"` // in milliseconds since 1970
	To    float64 `json:"to"`
	State string  `json:"state"`
	// Mixed says that several states were each shorter than a column.
	Mixed bool `json:"mixed,omitempty"`
}

// bands joins points, oldest first, into bands. A state lasts until the next point, and no longer than the largest gap.
type bands struct {
	gap, column time.Duration
	all         []band
	state       string
	known       bool
	from, last  time.Time
}

// add adds a point with the field. The state is not known if the value is none, such as null.
func (b *bands) add(t time.Time, state string, known bool) {
	b.pass(t)
	if b.known && (!known || state != b.state) {
		b.close(t)
	}
	if !b.known && known {
		b.state, b.known, b.from = state, true, t
	}
}

// pass adds a point without the field. It ends a state only after a gap.
func (b *bands) pass(t time.Time) {
	if b.gap > 0 && t.Sub(b.last) > b.gap {
		b.close(b.last)
	}
	b.last = t
}

// close ends the state at a time. A state that is shorter than a column is joined with such states before it.
func (b *bands) close(t time.Time) {
	if !b.known {
		return
	}
	b.known = false
	one := band{From: millis(b.from), To: millis(t), State: b.state}
	if n := len(b.all); n > 0 && t.Sub(b.from) < b.column {
		before := &b.all[n-1]
		column := float64(b.column) / float64(time.Millisecond)
		if before.To == one.From && (before.Mixed || before.To-before.From < column) {
			before.To, before.Mixed, before.State = one.To, true, ""
			return
		}
	}
	b.all = append(b.all, one)
}

// states answers with the bands of a field that is text, true or false.
func (s *Console) states(w http.ResponseWriter, r request) error {
	_, repo, err := s.dataset(r)
	if err != nil {
		return err
	}
	e, names, columns := r.params.entity(), r.params.fields(maxFields), r.params.integer("columns", 800, maxColumns)
	if len(names) != 1 {
		r.params.refuse("field", "not given once", "one field")
	}
	from, to, in := r.params.interval()
	gap, auto := r.params.gap()
	if err := r.params.check(); err != nil {
		return err
	}
	if auto {
		if gap, _, err = gapOf(r.Context(), repo, e, from, to, columns); err != nil {
			return err
		}
	}
	b := bands{gap: gap, all: []band{}}
	b.column = max(to.Sub(from)/time.Duration(columns), 1)
	before, err := repo.LatestFields(r.Context(), e, tsdb.FieldOptions{AsOf: from}) // the state in which the interval begins
	if err != nil && !bad(err) && !errors.Is(err, tsdb.ErrNotFound) {
		return err
	}
	if at, ok := before.Times.Of(names[0]); ok {
		v, _ := before.Value.Lookup(names[0])
		state, known := state(v)
		b.add(at, state, known)
		if b.gap == 0 || from.Sub(before.Times.Newest()) <= b.gap {
			b.from, b.last = from, from
		}
	}
	found, damaged := 0, 0
	for p, err := range repo.Range(r.Context(), e, in, tsdb.OldestFirst) {
		found++
		if bad(err) {
			damaged++
			continue
		}
		if err != nil {
			return err
		}
		v, ok := p.Value.Lookup(names[0])
		if !ok {
			b.pass(p.Time)
			continue
		}
		state, known := state(v)
		if b.add(p.Time, state, known); len(b.all) > maxBands {
			return problem{Status: http.StatusBadRequest, Detail: "The state changes too often for one chart. Choose a shorter time."}
		}
	}
	end := to
	if now := time.Now(); now.Before(end) {
		end = now
	}
	if b.gap > 0 && end.Sub(b.last) > b.gap {
		end = b.last
	}
	b.close(end)
	return encode(w, map[string]any{"bands": b.all, "gap_ms": inMillis(gap), "bad": damaged, "points": found})
}
