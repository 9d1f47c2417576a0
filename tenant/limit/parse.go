package limit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// Parse reads a table from JSON, for example from a file:
//
//	{
//	  "share": 0.25,
//	  "defaults": {"points_per_second": 1000, "points_burst": 5000, "range_length": "744h"},
//	  "overrides": {"acme": {"points_per_second": 10000, "range_length": "0s"}}
//	}
//
// The members of limits have the names of the fields of Limits. range_length is text in the syntax of
// time.ParseDuration; the others are whole numbers. A limit that an override does not name has its default, and 0 is
// no limit. An override with a rate but no burst has the burst of one second. All members are optional.
//
// Parse rejects unknown and repeated members, and limits that New would reject. The error names the place.
func Parse(data []byte) (Table, error) {
	var t Table
	err := object(data, "", func(name, at string, value json.RawMessage) (err error) {
		switch name { // in the order of their names: the defaults come before the overrides
		case "defaults":
			_, err = t.Defaults.parse(value, at)
			return err
		case "overrides":
			return object(value, at, func(name, at string, value json.RawMessage) error {
				id, err := tenant.Parse(name)
				if err != nil {
					return fmt.Errorf("%w: overrides: %w", invalid.ErrLimits, err)
				}
				l := t.Defaults
				if _, err := l.parse(value, at); err != nil {
					return err
				}
				if t.Overrides == nil {
					t.Overrides = map[tenant.ID]Limits{}
				}
				t.Overrides[id] = l
				return nil
			})
		case "share":
			if t.Share, err = strconv.ParseFloat(string(value), 64); err != nil || !(t.Share > 0 && t.Share <= 1) {
				return invalid.New(invalid.ErrLimits, at, invalid.Quote(string(value)), "a number above 0 and up to 1")
			}
			return nil
		}
		return invalid.New(invalid.ErrLimits, at, "unknown", "share, defaults or overrides")
	})
	if err == nil {
		err = t.check()
	}
	if err != nil {
		return Table{}, err
	}
	return t, nil
}

// MarshalJSON returns the table in the format of Parse.
func (t Table) MarshalJSON() ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	overrides := make(map[string]map[string]any, len(t.Overrides))
	for id, l := range t.Overrides {
		overrides[id.String()] = l.named(true)
	}
	return json.Marshal(struct {
		Share     float64                   `json:"share,omitempty"`
		Defaults  Limits                    `json:"defaults"`
		Overrides map[string]map[string]any `json:"overrides,omitempty"`
	}{t.Share, t.Defaults, overrides})
}

// UnmarshalJSON is Parse.
func (t *Table) UnmarshalJSON(data []byte) error {
	parsed, err := Parse(data)
	if err == nil {
		*t = parsed
	}
	return err
}

// MarshalJSON returns an object of the limits that are not zero.
func (l Limits) MarshalJSON() ([]byte, error) { return json.Marshal(l.named(false)) }

// UnmarshalJSON parses limits as Parse parses the defaults of a table.
func (l *Limits) UnmarshalJSON(data []byte) error {
	var parsed Limits
	if _, err := parsed.parse(data, "limits"); err != nil {
		return err
	}
	if err := parsed.check("limits."); err != nil {
		return err
	}
	*l = parsed
	return nil
}

// named returns the limits by the names of their members; all of them, or those that are not zero.
func (l Limits) named(all bool) map[string]any {
	out := map[string]any{}
	for _, m := range members {
		switch v := *m.at(&l); {
		case v == 0 && !all:
		case m.name == string(RangeLength):
			out[m.name] = m.text(v)
		default:
			out[m.name] = v
		}
	}
	return out
}

// parse sets the limits in an object, and returns their names. A rate without its burst resets the burst.
func (l *Limits) parse(data []byte, at string) (named map[string]bool, err error) {
	named = map[string]bool{}
	err = object(data, at, func(name, at string, value json.RawMessage) error {
		i := slices.IndexFunc(members, func(m member) bool { return m.name == name })
		if i < 0 {
			return invalid.New(invalid.ErrLimits, at, "unknown", "a limit, such as "+string(PointsPerSecond))
		}
		named[name] = true
		return members[i].parse(members[i].at(l), at, value)
	})
	for _, m := range members {
		if named[m.rate] && !named[m.name] {
			named[m.name], *m.at(l) = true, 0
		}
	}
	return named, err
}

func (m member) parse(to *int64, at string, value json.RawMessage) error {
	want := "a whole number, 0 for no limit, or up to " + m.text(m.most)
	n, err := strconv.ParseInt(string(value), 10, 64)
	if m.name == string(RangeLength) {
		want = `a duration in quotes, such as "744h"`
		var text string
		if err = json.Unmarshal(value, &text); err == nil {
			var d time.Duration
			d, err = time.ParseDuration(text)
			n = int64(d)
		}
	}
	if err != nil {
		return invalid.New(invalid.ErrLimits, at, invalid.Quote(string(value)), want)
	}
	*to = n
	return nil
}

// object calls each for the members of a JSON object, sorted by name, with their places for errors. It rejects a
// repeated name, which encoding/json accepts, and compares names exactly, which encoding/json does not.
func object(data []byte, at string, each func(name, at string, value json.RawMessage) error) error {
	var members map[string]json.RawMessage
	err := json.Unmarshal(data, &members)
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("%w: not JSON at line %d: %w", invalid.ErrLimits, 1+bytes.Count(data[:min(len(data), int(bad.Offset))], []byte("\n")), err)
	}
	if err != nil || members == nil {
		return invalid.New(invalid.ErrLimits, cmp.Or(at, "the document"), invalid.Quote(string(data)), "an object")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	_, _ = dec.Token() // {
	seen := map[string]bool{}
	for dec.More() {
		t, _ := dec.Token()
		name, _ := t.(string)
		if seen[name] {
			return invalid.New(invalid.ErrLimits, place(at, name), "present twice", "each name once")
		}
		seen[name] = true
		var skipped json.RawMessage
		_ = dec.Decode(&skipped)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if err := each(name, place(at, name), members[name]); err != nil {
			return err
		}
	}
	return nil
}

// place returns a member's place for errors.
func place(at, name string) string {
	if _, err := tenant.Parse(name); err != nil {
		name = invalid.Quote(name)
	}
	if at == "" {
		return name
	}
	return at + "." + name
}
