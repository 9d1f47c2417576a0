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

// checkRoutes reads -route or -routes, and adds their datasets to those of -key. Without routes the datasets of -key take
// JSON, too, and without any -key each dataset does.
func (o *options) checkRoutes(flags inbound.RouteFlags) error {
	given, err := flags.Parse()
	if err != nil {
		return err
	}
	noKeys := len(o.keys) == 0
	o.mapping = &inbound.Mapping{}
	if given != nil {
		if err := o.keys.AddRoutes(given); err != nil {
			return err
		}
		o.mapping = given.Mapping()
	}
	o.mapping.AddDefaults(o.keys, noKeys)
	if given != nil && len(given.Filters()) > 0 {
		o.routes = given
		return nil
	}
	if noKeys {
		o.keys[inbound.AnyDataset] = []string{jsonKey}
	}
	o.routes, err = builtInRoutes(o.keys)
	return err
}

// jsonKey is the key of the datasets of JSON, if no rule says another.
const jsonKey = "device"

// builtIn are the routes if none are given: the path is the dataset. Its key is that of -key.
type builtIn struct {
	named  map[string]*inbound.Route
	others *inbound.Route
}

func builtInRoutes(keys inbound.Keys) (*builtIn, error) {
	b := &builtIn{named: map[string]*inbound.Route{}}
	others := []string{jsonKey}
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
