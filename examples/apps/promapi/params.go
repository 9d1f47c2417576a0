package main

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/tidemark-go/tidemark/internal/instant"
)

// params reads the parameters of a request. It keeps the first error, so that a handler checks it once.
type params struct {
	url.Values
	now time.Time
	err error
}

func newParams(v url.Values, now time.Time) *params { return &params{v, now, nil} }

func (p *params) refuse(name string, err error) {
	if p.err == nil {
		p.err = fmt.Errorf("invalid parameter %q: %w", name, err)
	}
}

// The first and the last time that a request can name, and the first of samples.
var (
	epoch     = time.UnixMilli(0)
	firstTime = time.UnixMilli(math.MinInt64 / 1000)
	lastTime  = time.UnixMilli(math.MaxInt64 / 1000)
)

// time reads a time: seconds since 1970, or RFC 3339. Unset is the default.
func (p *params) time(name string, unset time.Time) time.Time {
	text := p.Get(name)
	if text == "" {
		return unset
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		whole, part := math.Modf(seconds)
		if t := time.Unix(int64(whole), int64(math.Round(part*1000))*int64(time.Millisecond)); math.Abs(seconds) <= float64(lastTime.Unix()) {
			return t.UTC()
		}
		p.refuse(name, fmt.Errorf("%.40q is out of range", text))
		return unset
	}
	t, err := instant.Parse(text)
	switch {
	case err != nil:
		p.refuse(name, fmt.Errorf("cannot parse %.40q to a valid timestamp", text))
	case t.Before(firstTime) || t.After(lastTime):
		p.refuse(name, fmt.Errorf("%.40q is out of range", text))
	default:
		return t
	}
	return unset
}

// duration reads a duration: seconds, or as PromQL writes it. It is above 0. Unset is the default.
func (p *params) duration(name string, unset time.Duration) time.Duration {
	text := p.Get(name)
	if text == "" {
		return unset
	}
	d := time.Duration(0)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if ns := seconds * float64(time.Second); ns >= 1 && ns < math.MaxInt64 {
			d = time.Duration(ns)
		}
	} else if parsed, err := model.ParseDuration(text); err == nil {
		d = time.Duration(parsed)
	}
	if d <= 0 {
		p.refuse(name, fmt.Errorf("%.40q is not a duration above 0", text))
		return unset
	}
	return d
}

// count reads a number, 0 or more. Unset is 0, for no limit.
func (p *params) count(name string) int {
	text := p.Get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		p.refuse(name, fmt.Errorf("%.40q is not a number of 0 or more", text))
		return 0
	}
	return n
}

// selectors reads match[].
func (p *params) selectors(with parser.Parser) [][]*labels.Matcher {
	var all [][]*labels.Matcher
	for _, text := range p.Values["match[]"] {
		matchers, err := with.ParseMetricSelector(text)
		if err != nil {
			p.refuse("match[]", err)
			return nil
		}
		if !narrow(matchers) {
			p.refuse("match[]", errors.New("match[] must contain at least one non-empty matcher"))
			return nil
		}
		all = append(all, matchers)
	}
	return all
}

// narrow reports whether matchers leave something out.
func narrow(matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches("") {
			return true
		}
	}
	return false
}

// interval reads start and end.
func (p *params) interval() (from, to time.Time) {
	from, to = p.time("start", firstTime), p.time("end", lastTime)
	if p.err == nil && to.Before(from) {
		p.refuse("end", errors.New("end timestamp must not be before start time"))
	}
	return from, to
}
