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

// The key is the fleet and then the truck, so that the trucks of a fleet lie together and their newest points are one call.
//
// There is a dataset for each question and not one for each kind of line. Lines come with fields missing: in one dataset of
// whole lines the newest point of a truck may lack its fuel, and whoever asks for that has to look further back; here the
// newest point of the fuel is the fuel. And a question reads no more than what it is about. The price is a row more a line.
var (
	truckKey = tsdb.Key("fleet", "truck")

	locations  = tsdb.MustDefine("locations", truckKey, codec.JSON[Location](), tsdb.SchemaOptions{})
	velocities = tsdb.MustDefine("velocities", truckKey, codec.Float64(), tsdb.SchemaOptions{})
	fuel       = tsdb.MustDefine("fuel", truckKey, codec.Float64(), tsdb.SchemaOptions{})  // the share of the tank that is full
	loads      = tsdb.MustDefine("loads", truckKey, codec.Float64(), tsdb.SchemaOptions{}) // the share of the capacity that is loaded

	schemas = []tsdb.Dataset{locations, velocities, fuel, loads}
)

// data is what is kept for one tenant.
type data struct {
	locations  *tsdb.Repository[Location]
	velocities *tsdb.Repository[float64]
	fuel       *tsdb.Repository[float64]
	loads      *tsdb.Repository[float64]
	byHour     *window.Aggregator[float64]
	fleets     map[string]string // that trucks belong to, by their names
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

// truck returns the entity of a truck, and false for one that is not known.
func (d *data) truck(name string) (tsdb.Entity, bool) {
	fleet, ok := d.fleets[name]
	return tsdb.NewEntity(fleet, name), ok
}
