package limit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// Parse reads a table from JSON, as a file may hold it:
//
//	{
//	  "share": 0.25,
//	  "defaults": {"points_per_second": 1000, "points_burst": 5000, "range_length": "744h"},
//	  "overrides": {"acme": {"points_per_second": 10000, "range_length": "0s"}}
//	}
//
// The members of limits have the names of the fields of Limits; range_length is text of time.ParseDuration, the others are
// whole numbers. What an override does not name is that of the defaults, and 0 is no limit; one that names a rate and not its
// burst has a burst of a second's worth. All members may be left out.
//
// What is not exactly this is refused, with an error that matches ErrInvalid and says where: members that are not known or
// come twice, and limits that New would refuse.
func Parse(data []byte) (Table, error) {
	var t Table
	if err := syntax(data); err != nil {
		return Table{}, err
	}
	var overrides []field
	err := object(data, "", func(f field) (err error) {
		switch f.name {
		case "share":
			if t.Share, err = strconv.ParseFloat(string(f.value), 64); err != nil || !(t.Share > 0 && t.Share <= 1) {
				return invalid.New(ErrInvalid, f.at, invalid.Quote(string(f.value)), "a number above 0 and up to 1")
			}
		case "defaults":
			return t.Defaults.parse(f)
		case "overrides": // once the defaults are known, wherever they stand
			return object(f.value, f.at, func(f field) error {
				overrides = append(overrides, f)
				return nil
			})
		default:
			return f.unknown("share, defaults or overrides")
		}
		return nil
	})
	if err != nil {
		return Table{}, err
	}
	for _, f := range overrides {
		id, err := tenant.Parse(f.name)
		if err != nil {
			return Table{}, fmt.Errorf("%w: overrides: %w", ErrInvalid, err)
		}
		l := t.Defaults
		if err := l.parse(f); err != nil {
			return Table{}, err
		}
		if t.Overrides == nil {
			t.Overrides = map[tenant.ID]Limits{}
		}
		t.Overrides[id] = l
	}
	if err := t.check(); err != nil {
		return Table{}, err
	}
	return t, nil
}

// MarshalJSON returns the table as Parse reads it.
func (t Table) MarshalJSON() ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	overrides := make(map[string]json.RawMessage, len(t.Overrides))
	for id, l := range t.Overrides {
		overrides[id.String()] = l.append(nil, true)
	}
	return json.Marshal(struct {
		Share     float64                    `json:"share,omitempty"`
		Defaults  Limits                     `json:"defaults"`
		Overrides map[string]json.RawMessage `json:"overrides,omitempty"`
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

// MarshalJSON returns the limits as an object of those that there are.
func (l Limits) MarshalJSON() ([]byte, error) { return l.append(nil, false), nil }

// UnmarshalJSON reads limits as Parse reads the defaults of a table.
func (l *Limits) UnmarshalJSON(data []byte) error {
	var parsed Limits
	if err := syntax(data); err != nil {
		return err
	}
	if err := parsed.parse(field{value: data, at: "limits"}); err != nil {
		return err
	}
	if err := parsed.check("limits."); err != nil {
		return err
	}
	*l = parsed
	return nil
}

// append appends the limits as JSON, with all those that are none too.
func (l Limits) append(b []byte, all bool) []byte {
	b = append(b, '{')
	for _, m := range members {
		v := *m.at(&l)
		if v == 0 && !all {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, m.name), ':')
		if m.name == string(RangeLength) {
			b = strconv.AppendQuote(b, time.Duration(v).String())
		} else {
			b = strconv.AppendInt(b, v, 10)
		}
	}
	return append(b, '}')
}

// parse puts what an object names in the place of what is there.
func (l *Limits) parse(limits field) error {
	named := map[string]bool{}
	err := object(limits.value, limits.at, func(f field) error {
		for _, m := range members {
			if m.name == f.name {
				named[f.name] = true
				return m.parse(m.at(l), f)
			}
		}
		return f.unknown("a limit, such as " + string(PointsPerSecond))
	})
	for _, m := range members {
		if named[m.rate] && !named[m.name] {
			*m.at(l) = 0
		}
	}
	return err
}

func (m member) parse(to *int64, f field) error {
	text := string(f.value)
	if m.name == string(RangeLength) {
		var s string
		d, err := time.Duration(0), json.Unmarshal(f.value, &s)
		if err == nil {
			d, err = time.ParseDuration(s)
		}
		if err != nil {
			return invalid.New(ErrInvalid, f.at, invalid.Quote(text), `a duration in quotes, such as "744h"`)
		}
		*to = int64(d)
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return invalid.New(ErrInvalid, f.at, invalid.Quote(text), "a whole number, 0 for no limit, or up to "+m.text(m.most))
	}
	*to = n
	return nil
}

// field is a member of an object, and where it stands.
type field struct {
	name  string
	value json.RawMessage
	at    string
}

func (f field) unknown(want string) error {
	return invalid.New(ErrInvalid, f.at, "not known", want)
}

// object calls each for the members of an object, which is JSON for sure. A name that comes twice is refused.
func object(data []byte, at string, each func(field) error) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		if at == "" {
			at = "the whole"
		}
		return invalid.New(ErrInvalid, at, invalid.Quote(string(data)), "an object")
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		name, _ := t.(string)
		f := field{name: name, at: name}
		if _, err := tenant.Parse(name); err != nil {
			f.at = invalid.Quote(name)
		}
		if at != "" {
			f.at = at + "." + f.at
		}
		if seen[name] {
			return invalid.New(ErrInvalid, f.at, "there twice", "each name once")
		}
		seen[name] = true
		if err := dec.Decode(&f.value); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

// syntax refuses what is not one JSON value, and says at which line.
func syntax(data []byte) error {
	var v json.RawMessage
	err := json.Unmarshal(data, &v)
	if err == nil {
		return nil
	}
	if len(bytes.TrimSpace(data)) == 0 {
		err = io.ErrUnexpectedEOF
	}
	at := len(data)
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = min(at, int(bad.Offset))
	}
	return fmt.Errorf("%w: no JSON at line %d: %w", ErrInvalid, 1+bytes.Count(data[:at], []byte("\n")), err)
}
