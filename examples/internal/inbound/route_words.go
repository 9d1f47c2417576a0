package inbound

import (
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
	if value == "" && name != "merge" {
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
		r.key = strings.Split(value, ",")
	case "format":
		if r.format = value; value != formatJSON && value != formatLine {
			return fmt.Errorf("format is %q; want json or line", value)
		}
	case "time":
		field, unit, hasUnit := strings.Cut(value, ",")
		if r.time = field; hasUnit {
			if r.unit = units[unit]; r.unit == 0 {
				return fmt.Errorf("the unit of the time is %q; want s, ms, us or ns", unit)
			}
		}
	case "merge":
		if r.merge = true; value != "" {
			return errors.New("merge has a value; want the word alone")
		}
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
	default:
		return fmt.Errorf("unknown word %q; want tenant, dataset, key, format, time, number, merge, count, id, sum or remember", name)
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
	case r.format == formatLine && given["number"]:
		return errors.New("number needs format=json: line protocol says which fields are numbers")
	case slices.ContainsFunc(r.numbers, func(name string) bool { return name == r.time || name == r.id || slices.Contains(r.key, name) }):
		return errors.New("number or sum names the field of the time, of the identity or of the key, which is no field of the point")
	case r.tenant != "" && r.property != "":
		return errors.New("tenant is given twice")
	}
	if err := r.checkTime(); err != nil {
		return err
	}
	if err := r.checkCount(given); err != nil {
		return err
	}
	// Datasets that messages name are those of all inputs, which merge.
	r.merge = r.merge || r.dataset == ""
	name := r.dataset
	if name == "" {
		name = AnyDataset
	}
	return Keys{}.Add(name, r.key)
}

func (r *Route) checkTime() error {
	switch {
	case r.time == "":
		return errors.New("time is missing; want time=FIELD,UNIT, time=FIELD for texts of RFC 3339, or time=arrival")
	case r.time == timeArrival && r.unit != 0:
		return errors.New("time=arrival has a unit")
	case r.format == formatLine && r.time != timeArrival:
		if r.unit = units[r.time]; r.unit == 0 {
			return fmt.Errorf("time is %q; line protocol has its own time: want its unit s, ms, us or ns, or arrival for lines without one", r.time)
		}
	case r.format == formatLine:
		r.unit = time.Nanosecond
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
