package adopt

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"
)

// State is the progress of a copy. It marshals to JSON, in which it is meant to be saved. The zero State is the start.
// To begin a copy again, drop it: a copy writes the same points at the same keys.
type State struct {
	// Mapping identifies the text of the mapping file, and Dataset is where points are copied to.
	Mapping string `json:"mapping"`
	Dataset string `json:"dataset"`
	// Source and Store are the full names of the foreign table and of the store's. A name is empty if the client lacks
	// tsdb.DialOptions.
	Source string `json:"source,omitempty"`
	Store  string `json:"store,omitempty"`
	// Pass is 1 for the copy of the whole table, and more for passes that catch up.
	Pass int `json:"pass"`
	// Started is when the pass was started, by the store's clock. Since is when the pass before it was. It is nil in
	// the first pass, and in one before which the clock was set back: they copy the whole table.
	Started time.Time  `json:"started"`
	Since   *time.Time `json:"since,omitempty"`
	// Rows and Points are how many rows the pass has read and how many points it has written. After a crash some count
	// twice.
	Rows   int64 `json:"rows"`
	Points int64 `json:"points"`
	// Skipped is what the pass has left out, by the reasons of Unfit.
	Skipped map[string]int64 `json:"skipped"`
	// Ranges divide the table.
	Ranges []Range `json:"ranges"`
}

// Range is the progress in one range of the foreign table's row keys.
type Range struct {
	// Start is the first key, and End the first key after the range. Nil is the end of the table.
	Start []byte `json:"start,omitempty"`
	End   []byte `json:"end,omitempty"`
	// After is the last key whose row is done; nil for none.
	After []byte `json:"after,omitempty"`
	// Done says that all rows are.
	Done bool `json:"done,omitempty"`
}

// Complete reports whether the pass is complete. The zero State is not.
func (s State) Complete() bool {
	return len(s.Ranges) > 0 && !slices.ContainsFunc(s.Ranges, func(r Range) bool { return !r.Done })
}

// Done returns how many ranges of the pass are done.
func (s State) Done() int {
	n := 0
	for _, r := range s.Ranges {
		if r.Done {
			n++
		}
	}
	return n
}

func (s State) clone() State {
	s.Ranges, s.Skipped = slices.Clone(s.Ranges), maps.Clone(s.Skipped)
	return s
}

// check refuses a state that would leave out rows.
func (s *State) check() error {
	var next []byte
	for i, r := range s.Ranges {
		if !bytes.Equal(r.Start, next) || r.End == nil && i < len(s.Ranges)-1 {
			return fmt.Errorf("%w: its range %d does not begin where the one before it ends", ErrState, i)
		}
		if r.After != nil && (bytes.Compare(r.After, r.Start) < 0 || len(r.End) > 0 && bytes.Compare(r.After, r.End) >= 0) {
			return fmt.Errorf("%w: the last key of its range %d is outside of the range", ErrState, i)
		}
		next = r.End
	}
	if next != nil || len(s.Ranges) == 0 {
		return fmt.Errorf("%w: its ranges do not reach the end of the table", ErrState)
	}
	if s.Skipped == nil {
		s.Skipped = map[string]int64{}
	}
	return nil
}

// begun reports whether rows were copied.
func (s *State) begun() bool {
	return s.Pass > 1 || slices.ContainsFunc(s.Ranges, func(r Range) bool { return r.Done || r.After != nil })
}

// next begins another pass.
func (s *State) next(now time.Time) {
	s.Pass++
	s.Started, s.Rows, s.Points, s.Skipped = now, 0, 0, map[string]int64{}
	for i := range s.Ranges {
		s.Ranges[i].After, s.Ranges[i].Done = nil, false
	}
}

// counts are what was done with some rows.
type counts struct {
	rows, points int64
	skipped      map[string]int64
}

func (s *State) add(n counts) {
	s.Rows += n.rows
	s.Points += n.points
	for reason, of := range n.skipped {
		s.Skipped[reason] += of
	}
}

// rangesOf returns the ranges between keys.
func rangesOf(keys []string) []Range {
	ranges := make([]Range, 1, len(keys)+1)
	for _, key := range keys {
		ranges[len(ranges)-1].End = []byte(key)
		ranges = append(ranges, Range{Start: []byte(key)})
	}
	return ranges
}
