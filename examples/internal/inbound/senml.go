package inbound

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/codec"
)

// The fields of SenML, RFC 8428, that have base fields.
const (
	senmlName  = "n"
	senmlTime  = "t"
	senmlUnit  = "u"
	senmlValue = "v"
	senmlSum   = "s"
)

// senmlNow is the smallest time of SenML that is absolute; smaller ones are relative to now. Both are in seconds.
const senmlNow = 1 << 28

// IsPack reports whether the elements of a payload that is an array belong together, so that each is no message of its
// own.
func (r *Route) IsPack() bool { return r.format == formatSenML }

// resolveSenML returns the records of a pack of SenML without base fields and with absolute times. Records that only set
// base fields are left out.
func resolveSenML(v any, arrived time.Time) ([]any, error) {
	pack, ok := v.([]any)
	if !ok {
		return nil, badSyntax("the payload is no pack of SenML; want an array of records")
	}
	base := map[string]any{}
	out := make([]any, 0, len(pack))
	for i, one := range pack {
		record, ok := one.(map[string]any)
		if !ok {
			return nil, badSyntax("record %d is no object", i+1)
		}
		record = maps.Clone(record)
		for _, name := range []string{"bn", "bt", "bu", "bv", "bs", "bver"} {
			if v, ok := record[name]; ok {
				base[name[1:]] = v
				delete(record, name)
			}
		}
		if !hasAny(record, senmlValue, "vs", "vb", "vd", senmlSum) {
			continue
		}
		if err := resolveRecord(record, base, arrived); err != nil {
			return nil, err
		}
		out = append(out, record)
	}
	return out, nil
}

// resolveRecord applies the base fields to a record.
func resolveRecord(record, base map[string]any, arrived time.Time) (err error) {
	if record[senmlName], err = joinNames(base[senmlName], record[senmlName]); err != nil {
		return err
	}
	if record[senmlUnit] == nil {
		record[senmlUnit] = base[senmlUnit]
	}
	if record[senmlSum], err = addNumbers(senmlSum, base[senmlSum], record[senmlSum]); err != nil {
		return err
	}
	if record[senmlValue] != nil {
		if record[senmlValue], err = addNumbers(senmlValue, base[senmlValue], record[senmlValue]); err != nil {
			return err
		}
	}
	sum, err := addNumbers(senmlTime, base[senmlTime], record[senmlTime])
	if err != nil {
		return err
	}
	record[senmlTime], err = absoluteTime(sum, arrived)
	return err
}

func hasAny(record map[string]any, names ...string) bool {
	for _, name := range names {
		if record[name] != nil {
			return true
		}
	}
	return false
}

// joinNames returns the name of a record, or nil if it has none.
func joinNames(base, own any) (any, error) {
	var name string
	for _, part := range []any{base, own} {
		text, ok := part.(string)
		if !ok && part != nil {
			return nil, badSyntax("the field %q is %.64s; want a text", senmlName, fmt.Sprint(part))
		}
		if len(name)+len(text) > maxKey {
			return nil, badSyntax("the name of a record has more than %d bytes", maxKey)
		}
		name += text
	}
	if name == "" {
		return nil, nil
	}
	return name, nil
}

// addNumbers returns the sum of two numbers that may be missing, and nil if both are. A number alone stays exact.
func addNumbers(name string, base, own any) (any, error) {
	var sum float64
	for _, part := range []any{base, own} {
		if part == nil {
			continue
		}
		text, isNumber := part.(json.Number)
		n, ok := codec.ParseNumber(text.String())
		x, _ := n.Number()
		if !isNumber || !ok {
			return nil, badSyntax("the field %q is %.64s; want a number", name, fmt.Sprint(part))
		}
		sum += x
	}
	switch {
	case base == nil:
		return own, nil
	case own == nil:
		return base, nil
	}
	return json.Number(strconv.FormatFloat(sum, 'g', -1, 64)), nil
}

var errSenMLTime = errors.New("the time is not within 68 years before now, and not between 1978 and 9999")

// absoluteTime returns the seconds since 1970 of a time of SenML. Sums are rounded to a microsecond, which is what
// floats hold.
func absoluteTime(v any, arrived time.Time) (json.Number, error) {
	number, _ := v.(json.Number)
	n, _ := codec.ParseNumber(number.String())
	x, _ := n.Number()
	const earliest, latest = -1 << 31, 253402300800
	switch {
	case x < earliest || x >= latest || math.IsNaN(x):
		return "", &Error{ReasonTime, errSenMLTime}
	case x >= senmlNow:
		return json.Number(strconv.FormatFloat(x, 'f', 6, 64)), nil
	}
	at := arrived.Add(time.Duration(math.Round(x*1e6)) * time.Microsecond)
	return json.Number(strconv.FormatInt(at.Unix(), 10) + "." + strconv.Itoa(1e9 + at.Nanosecond())[1:]), nil
}
