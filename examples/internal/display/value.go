// Package display has the forms in which programs show stored values.
package display

import (
	"encoding/json"
	"math"

	"github.com/tidemark-go/tidemark/codec"
)

// Value is a value of a point in JSON. JSON has no number for NaN and the infinities: they are text, as a float64, a
// codec.Value and in a codec.Record. A record whose only field has no name is that field.
type Value struct{ Of any }

// MarshalJSON implements json.Marshaler.
func (v Value) MarshalJSON() ([]byte, error) {
	switch of := v.Of.(type) {
	case float64:
		return json.Marshal(finite(codec.Float(of)))
	case codec.Value:
		return json.Marshal(finite(of))
	case codec.Record:
		if one, single := of.Lookup(""); single && of.Len() == 1 {
			return json.Marshal(finite(one))
		}
		for name, field := range of.All() {
			if text := finite(field); text != field {
				of = of.With(name, text)
			}
		}
		return json.Marshal(of)
	}
	return json.Marshal(v.Of)
}

// finite returns a float that is not finite as text, and any other value as it is.
func finite(v codec.Value) codec.Value {
	if x, ok := v.Float(); ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
		text, _ := v.Text()
		return codec.Str(text)
	}
	return v
}
