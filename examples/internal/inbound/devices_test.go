package inbound_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/devices"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestDevices reads the messages of devices by the routes that devices.md shows to users.
func TestDevices(t *testing.T) {
	cases := devices.Cases(t)
	routes, err := inbound.ParseRoutes(strings.NewReader(devices.Lines(cases)))
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := routes.Schemas(tsdb.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	ds, err := inbound.NewDatasets(t.Context(), store, routes.Keys(), inbound.Options{Schemas: schemas})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		route, names := routes.Match(c.Topic)
		if route == nil {
			t.Errorf("%s: no route has the topic %s", c.Name, c.Topic)
			continue
		}
		now := time.Now()
		events, err := route.Events(t.Context(), ds, tenant.MustParse("acme"), inbound.Message{Names: names, Payload: c.Payload, Arrived: now})
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		var got []tsdb.Point[codec.Record]
		for _, e := range events {
			got = append(got, tsdb.Point[codec.Record]{Entity: e.Entity, Time: e.Time, Value: e.Record})
		}
		c.Check(t, got, now)
	}
}
