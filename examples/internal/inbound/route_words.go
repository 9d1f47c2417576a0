package inbound

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// units are those of numbers that are times, since 1970.
var units = map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": time.Nanosecond}

// set applies one word of a route.
func (r *Route) set(name, value string) (err error) {
	if value == "" && name != "merge" && name != "strict" {
		return fmt.Errorf("%s has no value; want %s=…", name, name)
	}
	switch name {
	case "tenant":
		if prop, ok := strings.CutPrefix(value, "property:"); ok {
			r.property = prop
		} else {
			r.tenant = value
		}
	case "dataset":
		r.dataset = value
	case "key":
		r.rule = strings.Split(value, ",")
		r.key = keyNames(r.rule)
	case "format":
		if r.format = value; value != formatJSON && value != formatLine {
			return fmt.Errorf("format is %q; want json or line", value)
		}
	case "time":
		err = r.setTime(value)
	case "zone":
		r.zone, err = time.LoadLocation(value)
		if err != nil || value == "Local" {
			return fmt.Errorf("zone is %q; want UTC or a name such as Europe/Berlin", value)
		}
	case "strict":
		r.strict, err = true, alone(name, value)
	case "arrays":
		if r.arrays = value; value != arraysIndex && value != arraysJSON {
			return fmt.Errorf("arrays is %q; want index or json", value)
		}
	case "each":
		r.each = value
	case "into":
		r.into = value
	case "merge":
		r.merge, err = true, alone(name, value)
	case "onchange":
		err = r.setOnChange(value)
	case "count":
		r.count, err = parseDuration(name, value)
	case "remember":
		r.keep, err = parseDuration(name, value)
	case "id":
		if prop, ok := strings.CutPrefix(value, "property:"); ok {
			r.idProp = prop
		} else {
			r.id = value
		}
	case "sum":
		r.sums = strings.Split(value, ",")
		r.numbers = append(r.numbers, r.sums...)
	case "number":
		r.numbers = append(r.numbers, strings.Split(value, ",")...)
	case "text":
		r.asText = strings.Split(value, ",")
	default:
		return fmt.Errorf("unknown word %q; want tenant, dataset, key, format, time, zone, number, text, arrays, each, into, strict, merge, onchange, count, id, sum or remember", name)
	}
	return err
}

func alone(name, value string) error {
	if value != "" {
		return fmt.Errorf("%s has a value; want the word alone", name)
	}
	return nil
}

// setTime takes time=FIELD, time=FIELD,UNIT, time=arrival or time=arrival,10s.
func (r *Route) setTime(value string) (err error) {
	field, unit, hasUnit := strings.Cut(value, ",")
	switch r.time = field; {
	case !hasUnit:
	case field == timeArrival:
		r.cut, err = parseDuration("the unit of time=arrival", unit)
	case unit == "auto":
		r.auto = true
	default:
		if r.unit = units[unit]; r.unit == 0 {
			return fmt.Errorf("the unit of the time is %q; want s, ms, us, ns or auto", unit)
		}
	}
	return err
}

func parseDuration(name, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s is %q; want a duration such as 1h or 15m", name, value)
	}
	return d, nil
}

// check completes a route, and refuses words that do not fit together.
func (r *Route) check(given map[string]bool) error {
	names := r.pattern.names()
	captured := slices.Contains(names, datasetName)
	switch {
	case r.key == nil:
		return errors.New("key is missing; want key=name,name")
	case r.dataset != "" && captured:
		return errors.New("the pattern captures dataset, and dataset= names another")
	case r.dataset == "" && !captured && r.format == formatJSON:
		return errors.New("dataset is missing; want dataset=name, or a level +dataset")
	case slices.Contains(r.key, tenantName), slices.Contains(r.key, datasetName):
		return errors.New("key has tenant or dataset, which are stored outside the key")
	case slices.Contains(r.key, OtherHash):
		return errHash
	case r.format == formatLine && (r.dataset != "" || captured):
		return errors.New("each line of line protocol names its dataset; want neither dataset= nor +dataset")
	case r.format == formatLine && r.count > 0:
		return errors.New("count needs format=json")
	case slices.ContainsFunc(r.numbers, func(name string) bool { return name == r.time || name == r.id || slices.Contains(r.key, name) }):
		return errors.New("number or sum names the field of the time, of the identity or of the key, which is no field of the point")
	case slices.ContainsFunc(r.asText, func(name string) bool { return name == r.time || slices.Contains(r.numbers, name) }):
		return errors.New("text names the field of the time, or one that number or sum names")
	case r.tenant != "" && r.property != "":
		return errors.New("tenant is given twice")
	}
	for _, check := range []func() error{r.checkTime, func() error { return r.checkPayload(given) }} {
		if err := check(); err != nil {
			return err
		}
	}
	if err := cmp.Or(r.checkCount(given), r.checkOnChange()); err != nil {
		return err
	}
	// Datasets that messages name are those of all inputs, which merge.
	r.merge = r.merge || r.dataset == ""
	name := r.dataset
	if name == "" {
		name = AnyDataset
	}
	return Keys{}.Add(name, r.rule)
}

func (r *Route) checkTime() error {
	switch {
	case r.time == "":
		return errors.New("time is missing; want time=FIELD,UNIT, time=FIELD for texts of RFC 3339, or time=arrival")
	case r.cut > 0 && !r.merge && r.dataset != "":
		return errors.New("time=arrival with a duration needs merge: otherwise the last message of that time replaces the others")
	case r.zone != nil && (r.time == timeArrival || r.unit != 0):
		return errors.New("zone is for a time that is a text; the route's is the arrival or a number")
	case r.format == formatLine && r.time != timeArrival:
		if r.unit = units[r.time]; r.unit == 0 {
			return fmt.Errorf("time is %q; line protocol has its own time: want its unit s, ms, us or ns, or arrival for lines without one", r.time)
		}
	case r.format == formatLine:
		r.unit = time.Nanosecond
	}
	return nil
}

// checkPayload checks the words on the form of payloads.
func (r *Route) checkPayload(given map[string]bool) error {
	level, isLevel := strings.CutPrefix(r.into, "+")
	switch {
	case r.format == formatLine:
		for _, word := range []string{"number", "text", "zone", "arrays", "each", "into", "strict"} {
			if given[word] {
				return fmt.Errorf("%s needs format=json: line protocol says itself what its fields are", word)
			}
		}
	case r.arrays != "" && r.strict:
		return errors.New("strict and arrays exclude each other: strict refuses a message with an array")
	case isLevel && len(r.pattern.names()) > 0 && !slices.Contains(r.pattern.names(), level): // else attributes have the names
		return fmt.Errorf("into names the level %q, which the pattern does not capture", level)
	case isLevel && (level == tenantName || level == datasetName || slices.Contains(r.key, level)):
		return fmt.Errorf("into names the level %q, which is the tenant, the dataset or a part of the key", level)
	}
	return nil
}

func (r *Route) checkCount(given map[string]bool) error {
	if r.count == 0 {
		for _, word := range []string{"id", "sum", "remember"} {
			if given[word] {
				return fmt.Errorf("%s is given without count", word)
			}
		}
		return nil
	}
	if r.keep == 0 {
		r.keep = 24 * time.Hour
	}
	switch {
	case r.id == "" && r.idProp == "":
		return errors.New("count needs id=FIELD or id=property:NAME: the identity by which a message that is sent again is known")
	case r.merge:
		return errors.New("count and merge exclude each other: counted messages are not stored")
	case r.dataset == "":
		return errors.New("count needs dataset=")
	case r.time == timeArrival:
		return errors.New("count needs a time of the message: a message that is sent again arrives at another time")
	}
	return nil
}
