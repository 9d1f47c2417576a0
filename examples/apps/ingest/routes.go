package main

import (
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

// checkRoutes reads -route or -routes, and adds their datasets to those of -key and -otlp. Their store and drop lines are
// for line protocol. Without routes the datasets of -key take JSON, too.
func (o *options) checkRoutes(flags inbound.RouteFlags) error {
	given, err := flags.Parse()
	if err != nil {
		return err
	}
	if given != nil {
		o.lines = given.Mapping()
		if err := o.keys.AddRoutes(given); err != nil {
			return err
		}
		if len(given.Filters()) > 0 { // not only store and drop lines
			o.routes = given
			return nil
		}
	}
	o.routes, err = builtInRoutes(o.keys)
	return err
}

// builtIn are the routes if none are given: the path is the dataset. Its key is that of -key.
type builtIn struct {
	named  map[string]*inbound.Route
	others *inbound.Route
}

func builtInRoutes(keys inbound.Keys) (*builtIn, error) {
	b := &builtIn{named: map[string]*inbound.Route{}}
	others := []string{"device"}
	for name, key := range keys {
		switch last := key[len(key)-1]; {
		case name == inbound.AnyDataset && len(key) == 1 && last == inbound.OtherTags:
			others = append(others, key...) // or all devices would be one series
		case name == inbound.AnyDataset:
			others = key
		case last != inbound.OtherHash: // such a dataset stores OTLP only
			r, err := inbound.ParseRoute(name, "dataset="+name, "key="+strings.Join(key, ","), "time=time,auto", "merge")
			if err != nil {
				return nil, err
			}
			b.named[name] = r
		}
	}
	var err error
	b.others, err = inbound.ParseRoute("+dataset", "key="+strings.Join(others, ","), "time=time,auto", "merge")
	return b, err
}

func (b *builtIn) Match(topic string) (*inbound.Route, map[string]string) {
	if r := b.named[topic]; r != nil {
		return r, nil
	}
	if strings.Contains(topic, "/") {
		return nil, nil
	}
	return b.others, map[string]string{"dataset": topic}
}

func (*builtIn) Schemas(tsdb.SchemaOptions) ([]*tsdb.Schema[codec.Record], error) { return nil, nil }
