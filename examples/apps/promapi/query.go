package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"
)

// query answers the value of an expression at one time.
func (s *server) query(ctx context.Context, r request) (answer, error) {
	text, at := r.params.Get("query"), r.params.evaluated("time", s.now())
	opts := r.queryOptions()
	n := r.params.count("limit")
	if r.params.err != nil {
		return answer{}, nil
	}
	if err := s.check(text, at, at); err != nil {
		return answer{}, err
	}
	q, err := s.engine.NewInstantQuery(ctx, s.queryable(r), opts, text, at)
	return s.run(ctx, r, q, err, n)
}

// mostSteps is the number of values of a series in the answer to a range query.
const mostSteps = 11_000

// queryRange answers the values of an expression at each step of an interval.
func (s *server) queryRange(ctx context.Context, r request) (answer, error) {
	text := r.params.Get("query")
	from, to := r.params.evaluated("start", epoch), r.params.evaluated("end", epoch)
	step := r.params.duration("step", 0)
	opts := r.queryOptions()
	n := r.params.count("limit")
	for _, name := range []string{"start", "end", "step"} {
		if r.params.Get(name) == "" {
			r.params.refuse(name, errors.New("it is missing"))
		}
	}
	switch {
	case r.params.err != nil:
		return answer{}, nil
	case step < time.Millisecond:
		r.params.refuse("step", errors.New("it is less than a millisecond"))
		return answer{}, nil
	case to.Before(from):
		r.params.refuse("end", errors.New("end timestamp must not be before start time"))
		return answer{}, nil
	case (to.UnixMilli()-from.UnixMilli())/step.Milliseconds() > mostSteps:
		return answer{}, badData(errors.New("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)"))
	}
	if err := s.check(text, from, to); err != nil {
		return answer{}, err
	}
	q, err := s.engine.NewRangeQuery(ctx, s.queryable(r), opts, text, from, to, step)
	return s.run(ctx, r, q, err, n)
}

// check refuses an expression that cannot be evaluated between two times.
func (s *server) check(text string, from, to time.Time) error {
	expr, err := s.parse(text, mostLevels)
	if err != nil {
		return err
	}
	if err := checkDistances(expr, from, to); err != nil {
		return badData(err)
	}
	return nil
}

func (r request) queryOptions() promql.QueryOpts {
	return promql.NewPrometheusQueryOpts(false, r.params.duration("lookback_delta", 0))
}

// run executes a query. The answer is encoded before the query is closed: Close gives the memory of the result to other
// queries, which would then be seen in this one, also those of other tenants.
func (s *server) run(ctx context.Context, r request, q promql.Query, err error, limit int) (answer, error) {
	if err != nil {
		return answer{}, badData(err)
	}
	defer q.Close()
	began := time.Now()
	result := q.Exec(ctx)
	s.noteSlow(r, time.Since(began))
	if result.Err != nil {
		return answer{}, result.Err
	}
	value, cut := shorten(result.Value, limit)
	notes := result.Warnings
	if cut {
		notes = notes.Add(errors.New("results truncated due to limit"))
	}
	if notes == nil {
		notes = annotations.Annotations{}
	}
	return answer{appendValue(nil, value), r.params.Get("query"), notes}, nil
}

// shorten returns at most n series of a value; 0 is all.
func shorten(v parser.Value, n int) (parser.Value, bool) {
	switch v := v.(type) {
	case promql.Vector:
		if n > 0 && len(v) > n {
			return v[:n], true
		}
	case promql.Matrix:
		if n > 0 && len(v) > n {
			return v[:n], true
		}
	}
	return v, false
}

// noteSlow logs a query that took long.
func (s *server) noteSlow(r request, took time.Duration) {
	if s.limits.slow <= 0 || took < s.limits.slow {
		return
	}
	s.log.Warn("slow query", "path", r.URL.Path, "took", took.Round(time.Millisecond), "query", s.withoutValues(r.params.Get("query")))
}

// withoutValues returns a query for the log: the values of matchers and texts are left out, because they may be
// personal data.
func (s *server) withoutValues(text string) string {
	expr, err := s.parser.ParseExpr(text)
	if err != nil {
		return ""
	}
	_ = parser.Walk(hider{}, expr, nil)
	return expr.String()
}

// hider replaces values in an expression. It implements parser.Visitor.
type hider struct{}

func (h hider) Visit(node parser.Node, _ []parser.Node) (parser.Visitor, error) {
	switch n := node.(type) {
	case *parser.VectorSelector:
		for i, m := range n.LabelMatchers {
			if m.Name == "__name__" {
				continue
			}
			hidden := *m
			hidden.Value = "…"
			n.LabelMatchers[i] = &hidden
		}
	case *parser.StringLiteral:
		n.Val = "…"
	}
	return h, nil
}

// formatQuery answers an expression as PromQL's formatter writes it.
func (s *server) formatQuery(_ context.Context, r request) (answer, error) {
	expr, err := s.parse(r.params.Get("query"), mostFormatted)
	if err != nil {
		return answer{}, err
	}
	return answer{data: appendString(nil, expr.Pretty(0))}, nil
}

// The length of an expression in bytes, and how many levels it has: a + b + c has three. PromQL calls itself for each
// level, and a goroutine whose stack is too large ends the program. Its formatter takes minutes for a few thousand, and
// cannot be stopped.
const (
	mostText      = 64 << 10
	mostLevels    = 1000
	mostFormatted = 100
)

// parse parses an expression that is not too long, has at most a number of levels, and makes no long labels.
func (s *server) parse(text string, levels int) (parser.Expr, error) {
	if len(text) > mostText {
		return nil, badData(fmt.Errorf("the expression has %d bytes; want at most %d", len(text), mostText))
	}
	expr, err := s.parser.ParseExpr(text)
	if err != nil {
		return nil, badData(err)
	}
	level := []parser.Node{expr}
	for range levels {
		var below []parser.Node
		for _, node := range level {
			below = append(below, parser.Children(node)...)
		}
		if level = below; len(level) == 0 {
			if _, err := made(expr); err != nil {
				return nil, badData(err)
			}
			return expr, nil
		}
	}
	return nil, badData(fmt.Errorf("the expression has more than %d levels", levels))
}
