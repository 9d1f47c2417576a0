package crash_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/proof/crash"
)

// ledger is what the steps of a workload leave, by their notes.
type ledger struct {
	values  map[string][]string  // by key, what may be stored; "" is nothing. A missing key holds nothing
	late    map[string][]string  // by key, the values of writes of unknown outcome, which may show later
	firsts  map[string][]attempt // by key, the writes of a point whose first write wins
	dropped map[string]bool      // by dead letter, whether that was acknowledged
	erased  map[string]bool      // the entities that are to be erased
	exports map[string]bool      // by name, whether the export was acknowledged
}

// attempt is a write of a point whose first write wins.
type attempt struct {
	value   string
	journal bool
	outcome byte
}

// newLedger reads the notes of a workload. A step that began and did not end has an unknown outcome.
func newLedger(list []step, ops []crash.Op) (*ledger, error) {
	l := &ledger{map[string][]string{}, map[string][]string{}, map[string][]attempt{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	var before []string // what each effect of the step that runs would leave if it was rejected
	letter := ""
	for _, o := range ops {
		if o.Kind != crash.Note {
			continue
		}
		word, rest, _ := strings.Cut(o.Text, " ")
		if word == "drop" {
			letter = rest
			if _, known := l.dropped[letter]; !known {
				l.dropped[letter] = false
			}
			continue
		}
		var i int
		var outcome string
		if n, _ := fmt.Sscan(rest, &i, &outcome); n < 1 || i >= len(list) || word != "begin" && word != "end" {
			return nil, fmt.Errorf("an unknown note %q", o.Text)
		}
		s := list[i]
		if word == "begin" {
			before, letter = nil, ""
			if s.name == reopens { // what is open then holds a write or does not
				clear(l.late)
			}
			for _, e := range s.effects {
				before = append(before, l.begin(s, e))
			}
			continue
		}
		if s.name == dropsLetter && letter != "" && outcome == "s" {
			l.dropped[letter] = true
		}
		for n, e := range s.effects {
			l.end(s, e, outcome[n], before[n])
		}
	}
	return l, nil
}

func (l *ledger) begin(s step, e effect) (before string) {
	if name, ok := strings.CutPrefix(e.key, "erased "); ok {
		l.erased[name] = true
		return ""
	}
	if name, ok := strings.CutPrefix(e.key, "export "); ok {
		l.exports[name] = false
		return ""
	}
	if strings.HasPrefix(e.key, "once d") {
		l.firsts[e.key] = append(l.firsts[e.key], attempt{e.value, s.name == enqueues, 'u'})
		return ""
	}
	old := l.possible(e.key)
	l.values[e.key] = append(slices.Clone(old), e.value)
	return strings.Join(old, ",")
}

func (l *ledger) end(s step, e effect, outcome byte, before string) {
	name, exports := strings.CutPrefix(e.key, "export ")
	switch {
	case exports:
		l.exports[name] = outcome == 's'
	case strings.HasPrefix(e.key, "erased "):
	case strings.HasPrefix(e.key, "once d"):
		list := l.firsts[e.key]
		list[len(list)-1].outcome = outcome
	case outcome == 's' && s.name == deletesAll: // where it finds nothing it writes nothing, and a late write comes behind it
		l.values[e.key] = append([]string{e.value}, l.late[e.key]...)
	case outcome == 's':
		l.values[e.key] = []string{e.value}
		delete(l.late, e.key)
	case outcome == 'u':
		l.late[e.key] = append(l.late[e.key], e.value)
	case outcome == 'r':
		l.values[e.key] = strings.Split(before, ",")
	}
}

func (l *ledger) possible(key string) []string {
	if v, ok := l.values[key]; ok {
		return v
	}
	return []string{""}
}
