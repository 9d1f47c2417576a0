package inbound

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// RouteFlags are the flags -routes and -route.
type RouteFlags struct {
	file  string
	lines []string
}

// Flags defines the flags. what is matched by the patterns, such as "topics".
func (f *RouteFlags) Flags(flags *flag.FlagSet, what string) {
	flags.StringVar(&f.file, "routes", "", "the pattern `file`: on each line a pattern of "+what+", and where and how its messages are stored")
	flags.Func("route", "one `line` of a pattern file; may be repeated", func(line string) error {
		f.lines = append(f.lines, line)
		return nil
	})
}

// Parse returns the routes, or nil if none are given. Its errors name the flag and the line.
func (f *RouteFlags) Parse() (*Routes, error) {
	switch {
	case f.file != "" && f.lines != nil:
		return nil, errors.New("-routes and -route exclude each other")
	case f.lines != nil:
		routes, err := ParseRoutes(strings.NewReader(strings.Join(f.lines, "\n")))
		if err != nil {
			return nil, fmt.Errorf("-route: %w", err)
		}
		return routes, nil
	case f.file == "":
		return nil, nil
	}
	in, err := os.Open(f.file)
	if err != nil {
		return nil, fmt.Errorf("-routes: %w", err)
	}
	defer in.Close()
	routes, err := ParseRoutes(in)
	if err != nil {
		return nil, fmt.Errorf("-routes %s: %w", f.file, err)
	}
	return routes, nil
}

// AddRoutes adds the rules of routes, which drop no part of a key. A dataset that has a rule already must have the same
// one, and merge: the other rules are of datasets that do.
func (ks Keys) AddRoutes(rs *Routes) error {
	for _, name := range slices.Sorted(maps.Keys(ks)) {
		if err := rs.mapping.keeps(name, keyNames(ks[name])); err != nil {
			return err
		}
	}
	added := rs.Keys()
	for _, name := range slices.Sorted(maps.Keys(added)) {
		key, text := added[name], strings.Join(added[name], ",")
		old, ok := ks[name]
		switch {
		case !ok:
			ks[name] = key
		case !slices.Equal(old, key):
			return fmt.Errorf("a route says key=%s for the dataset %s, and another rule says %s=%s (-key, or a store line)", text, name, name, strings.Join(old, ","))
		case !rs.merges(name):
			return fmt.Errorf("a route to the dataset %s does not say merge, and the rule %s=%s (-key, or a store line) is for points that merge", name, name, text)
		}
	}
	return nil
}

// merges reports whether the routes to a dataset merge. They agree.
func (rs *Routes) merges(name string) bool {
	i := slices.IndexFunc(rs.all, func(r *Route) bool { return r.dataset == name })
	return i < 0 || rs.all[i].merge
}

// IsLines reports whether the route reads line protocol.
func (r *Route) IsLines() bool { return r.format == formatLine }
