package main

import (
	"fmt"
	"maps"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// label_replace and label_join can repeat the value of a label, and calls within each other multiply it: thirty calls
// make a billion bytes of one. The samples of a query are counted, and their labels are not, so expressions that could
// make long ones are refused.

// What the labels of a series have at most: as they are stored, and those that an expression makes besides.
const (
	mostStored = 4 << 10
	mostMade   = 64 << 10
)

// lengths is how long the values of labels that an expression makes can be, by their names. Others are stored.
type lengths map[string]int

func (l lengths) of(name string) int {
	if n, ok := l[name]; ok {
		return n
	}
	return mostStored
}

// made returns the labels that a node makes, or an error if they can be too long.
func made(node parser.Node) (lengths, error) {
	l := lengths{}
	for _, child := range parser.Children(node) {
		inner, err := made(child)
		if err != nil {
			return nil, err
		}
		for name, n := range inner {
			l[name] = max(l[name], n)
		}
	}
	call, ok := node.(*parser.Call)
	if !ok {
		return l, nil
	}
	text := func(i int) string {
		if i >= len(call.Args) {
			return ""
		}
		arg := call.Args[i]
		for {
			inner, ok := arg.(*parser.ParenExpr)
			if !ok {
				break
			}
			arg = inner.Expr
		}
		s, _ := arg.(*parser.StringLiteral)
		if s == nil {
			return ""
		}
		return s.Val
	}
	switch call.Func.Name {
	case "label_replace": // (v, to, replacement, from, regex)
		template := text(2)
		n := len(template) + strings.Count(template, "$")*l.of(text(3))
		l[text(1)] = max(n, l.of(text(1))) // a value that does not match stays
	case "label_join": // (v, to, separator, from…)
		n := 0
		for i := 3; i < len(call.Args); i++ {
			n += l.of(text(i)) + len(text(2))
		}
		l[text(1)] = n
	}
	sum := 0
	for n := range maps.Values(l) {
		sum += n
	}
	if sum > mostMade {
		return nil, fmt.Errorf("%s could make labels of %d bytes; want at most %d, when each label has %d", call.Func.Name, sum, mostMade, mostStored)
	}
	return l, nil
}
