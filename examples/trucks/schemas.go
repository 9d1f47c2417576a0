package main

import (
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Location is where a truck was.
type Location struct {
	Lat  float64 `json:"lat"`
	Long float64 `json:"long"`
}

// The key is the fleet and then the truck, so the trucks of a fleet are stored next to each other and one call reads their
// newest points.
//
// Each question has a dataset, and not each kind of line. Lines may lack fields: in a dataset of whole lines, the newest point of
// a truck may lack its fuel, and a reader has to look further back. Here the newest point of the fuel dataset is the fuel, and a
// question reads only its own data. This costs an additional row per line.
var (
	truckKey = tsdb.Key("fleet", "truck")

	locations  = tsdb.MustDefine("locations", truckKey, codec.JSON[Location](), tsdb.SchemaOptions{})
	velocities = tsdb.MustDefine("velocities", truckKey, codec.Float64(), tsdb.SchemaOptions{})
	fuel       = tsdb.MustDefine("fuel", truckKey, codec.Float64(), tsdb.SchemaOptions{})  // the share of the tank that is full
	loads      = tsdb.MustDefine("loads", truckKey, codec.Float64(), tsdb.SchemaOptions{}) // the share of the capacity that is loaded

	schemas = []tsdb.Dataset{locations, velocities, fuel, loads}
)

// data is the stored data of one tenant.
type data struct {
	locations  *tsdb.Repository[Location]
	velocities *tsdb.Repository[float64]
	fuel       *tsdb.Repository[float64]
	loads      *tsdb.Repository[float64]
	byHour     *window.Aggregator[float64]
	fleets     map[string]string // the fleets of trucks, by truck
}

func newData(store *tsdb.Store, id tenant.ID) (*data, error) {
	value := window.Measure[float64]{Name: "value", Of: func(v float64) (float64, bool) { return v, true }}
	byHour, err := window.New(window.Every(time.Hour), []window.Measure[float64]{value}, window.Options{})
	return &data{
		locations:  locations.For(store, id),
		velocities: velocities.For(store, id),
		fuel:       fuel.For(store, id),
		loads:      loads.For(store, id),
		byHour:     byHour,
		fleets:     map[string]string{},
	}, err
}

// truck returns the entity of a truck, and false for an unknown truck.
func (d *data) truck(name string) (tsdb.Entity, bool) {
	fleet, ok := d.fleets[name]
	return tsdb.NewEntity(fleet, name), ok
}
