// Package fieldtest has data as it comes from the field, and runs the store on it.
package fieldtest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidemark-go/tidemark/codec"
)

const (
	TurnFields   = 40 // fields of each entity
	TurnMessages = 30 // messages of each entity
)

// TurnStart is the time of the first messages.
var TurnStart = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// Message is one message of an entity, which is counted from 0: three of its fields, by name. Values are float64, int,
// or nil. The times of an entity's messages are all different.
type Message struct {
	Entity int
	Time   time.Time
	Values map[string]any
}

// Newest is the newest value of a field that is not nil. The zero Newest is none.
type Newest struct {
	Time  time.Time
	Value float64
}

// TurnName returns the name of a field, of which there are TurnFields.
func TurnName(field int) string { return fmt.Sprintf("F%02d", field) }

// Turns returns messages of entities that send their fields in turn. Some messages are late, some values are nil, and
// some are whole numbers among fractions. The messages of an entity follow each other as they are sent.
func Turns(entities int) (all []Message) {
	random := rand.New(rand.NewPCG(1, 2))
	for e := range entities {
		for i := range TurnMessages {
			at := TurnStart.Add(time.Duration(i) * 10 * time.Second)
			if random.IntN(10) == 0 {
				at = at.Add(-75 * time.Second)
			}
			m := Message{e, at, map[string]any{}}
			for k := range 3 {
				m.Values[TurnName((3*i+k)%TurnFields)] = turnValue(random)
			}
			all = append(all, m)
		}
	}
	return all
}

func turnValue(random *rand.Rand) any {
	switch random.IntN(8) {
	case 0:
		return nil
	case 1:
		return random.IntN(1000)
	}
	return float64(random.IntN(1000)) / 8
}

// NewestOf returns the newest value of each field of each entity, as of a time.
func NewestOf(all []Message, asOf time.Time) map[int]map[string]Newest {
	out := map[int]map[string]Newest{}
	for _, m := range all {
		of := out[m.Entity]
		if of == nil {
			of = map[string]Newest{}
			out[m.Entity] = of
		}
		for name, v := range m.Values {
			if m.Time.After(asOf) || v == nil || m.Time.Before(of[name].Time) {
				continue
			}
			n := Newest{Time: m.Time}
			n.Value, _ = codec.ValueOf(v).Number()
			of[name] = n
		}
	}
	return out
}

// Tally counts the comparisons of newest fields with what was sent.
type Tally struct{ Compared, Wrong, Lacking int }

// Compare compares the newest fields that were found of an entity with those that it has. It returns a text for the
// first that is wrong.
func (c *Tally) Compare(got, want map[string]Newest) (wrong string) {
	for f := range TurnFields {
		name := TurnName(f)
		g, found := got[name]
		w, sent := want[name]
		c.Compared++
		switch {
		case !found && sent:
			c.Lacking++
		case found != sent || g.Value != w.Value || !g.Time.Equal(w.Time):
			if c.Wrong++; wrong == "" {
				wrong = fmt.Sprintf("%s is %v at %v, want %v at %v", name, g.Value, g.Time, w.Value, w.Time)
			}
		}
	}
	return wrong
}
