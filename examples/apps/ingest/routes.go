package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tsdb"
)

// routes say where messages of JSON are stored, by the path after /json/.
type routes interface {
	// Match returns the route of a topic, with the names that it captures, or nil.
	Match(topic string) (*inbound.Route, map[string]string)
	// Schemas defines the datasets that do not merge.
	Schemas(shared tsdb.SchemaOptions) ([]*tsdb.Schema[codec.Record], error)
}

// checkRoutes reads -route or -routes, and adds their datasets to those of -key. Without routes the datasets of -key
// take JSON, too, and without any -key each dataset does that no store line has.
func (o *options) checkRoutes(flags inbound.RouteFlags) error {
	given, err := flags.Parse()
	if err != nil {
		return err
	}
	keys := maps.Clone(o.keys)
	o.mapping = &inbound.Mapping{}
	if given != nil {
		if err := o.keys.AddRoutes(given); err != nil {
			return err
		}
		o.mapping = given.Mapping()
	}
	o.mapping.AddDefaults(o.keys, len(keys) == 0)
	if given != nil && len(given.Filters()) > 0 {
		o.routes = given
		return nil
	}
	if len(keys) == 0 {
		o.keys[inbound.AnyDataset] = []string{jsonKey}
		keys[inbound.AnyDataset] = o.keys[inbound.AnyDataset]
	}
	o.routes = builtInRoutes(keys, o.keys)
	return nil
}

// jsonKey is the key of the datasets of JSON, if no rule says another.
const jsonKey = "device"

// builtIn are the routes if none are given: the path is the dataset. Its key is that of -key.
type builtIn struct {
	named  map[string]*inbound.Route // nil for datasets that take no JSON
	others *inbound.Route
}

// builtInRoutes makes the routes of the datasets of -key. The other ones of all are those of store lines: their keys
// are made for lines and metrics, and messages of several devices would be one series.
func builtInRoutes(keys, all inbound.Keys) *builtIn {
	b := &builtIn{named: map[string]*inbound.Route{}}
	for name := range all {
		if name != inbound.AnyDataset {
			b.named[name] = jsonRoute(name, keys[name], "dataset="+name)
		}
	}
	others := keys[inbound.AnyDataset]
	if others == nil {
		others = []string{jsonKey}
	}
	b.others = jsonRoute("+dataset", others)
	return b
}

// jsonRoute returns a route of JSON, or nil if there is no key, or it has one of the names that routes use otherwise.
// Messages need a part of the key: without one, it is the device.
func jsonRoute(pattern string, key []string, words ...string) *inbound.Route {
	if key != nil && !slices.ContainsFunc(key, func(part string) bool { return part != inbound.OtherTags && !strings.HasSuffix(part, "?") }) {
		rest := slices.DeleteFunc(slices.Clone(key), func(part string) bool { return part == jsonKey+"?" })
		key = append([]string{jsonKey}, rest...)
	}
	r, _ := inbound.ParseRoute(pattern, append(words, "key="+strings.Join(key, ","), "time=time,auto", "merge")...)
	return r
}

func (b *builtIn) Match(topic string) (*inbound.Route, map[string]string) {
	if r, ok := b.named[topic]; ok {
		return r, nil
	}
	if strings.Contains(topic, "/") {
		return nil, nil
	}
	return b.others, map[string]string{"dataset": topic}
}

func (*builtIn) Schemas(tsdb.SchemaOptions) ([]*tsdb.Schema[codec.Record], error) { return nil, nil }
