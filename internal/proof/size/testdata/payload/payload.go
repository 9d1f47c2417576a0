// Package payload declares one type of payloads.
package payload

import (
	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Reading is a payload.
type Reading struct{ TempC float64 }

// Readings is its dataset.
var Readings = tsdb.MustDefine("readings", tsdb.Key("device"), codec.JSON[Reading](), tsdb.SchemaOptions{})
