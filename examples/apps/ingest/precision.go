package main

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
)

// units are the precisions, by their names in version 1 or 2.
var units = map[string]time.Duration{
	"": 1, "n": 1, "ns": 1, "u": time.Microsecond, "µ": time.Microsecond, "us": time.Microsecond,
	"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour,
}

// units3 are those of version 3; auto is another one.
var units3 = map[string]time.Duration{
	"nanosecond": 1, "ns": 1, "microsecond": time.Microsecond, "us": time.Microsecond,
	"millisecond": time.Millisecond, "ms": time.Millisecond, "second": time.Second, "s": time.Second,
}

// clock returns how the lines of a request of version 1 or 2 state the time.
func clock(query url.Values) (inbound.Clock, error) {
	unit, ok := units[query.Get("precision")]
	if !ok {
		return inbound.Clock{}, errors.New("precision must be ns, us, ms, s, m or h")
	}
	return inbound.Clock{Unit: unit, Now: time.Now().Truncate(unit)}, nil
}

// clock3 does the same for version 3. It refuses a parameter that would promise what is not done.
func clock3(query url.Values) (inbound.Clock, error) {
	partial, err := boolean(query, "accept_partial", true)
	if err == nil && !partial {
		err = errors.New("accept_partial=false is not supported: the good lines of a request are stored")
	}
	if err == nil {
		_, err = boolean(query, "no_sync", false) // every answer waits until the points are stored
	}
	if err != nil {
		return inbound.Clock{}, err
	}
	name := query.Get("precision")
	if name == "" || name == "auto" {
		return inbound.Clock{Guess: true, Now: time.Now()}, nil
	}
	unit, ok := units3[name]
	if !ok {
		return inbound.Clock{}, errors.New("precision must be auto, nanosecond, microsecond, millisecond or second")
	}
	return inbound.Clock{Unit: unit, Now: time.Now().Truncate(unit)}, nil
}

// boolean reads a parameter of a query.
func boolean(query url.Values, name string, otherwise bool) (bool, error) {
	text := query.Get(name)
	if text == "" {
		return otherwise, nil
	}
	yes, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%s is %.20q; want 1 or 0, or true or false", name, text)
	}
	return yes, nil
}
