package codec

import (
	"encoding/json"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// UnmarshalJSON sets v to what JSON has for a field: a number as [ParseNumber] reads it, text, a bool or a list. As for
// other types, null changes nothing; so does an object, which is no value. A number that is too large for a float64 is
// an error. A field of a struct with the tag omitzero that is null or missing stays the zero Value, and is left out
// again. v must not be in use by another goroutine.
func (v *Value) UnmarshalJSON(data []byte) error {
	if v == nil {
		return invalid.New(codecerr.ErrInvalid, "value", "nil", "a pointer to a Value")
	}
	plain, err := decodeJSON(data)
	if err != nil {
		return fmt.Errorf("codec: value: %w", err)
	}
	of := ValueOf(plain)
	switch of.kind {
	case KindNull:
		return nil
	case KindInvalid:
		if _, isNumber := plain.(json.Number); isNumber {
			return fmt.Errorf("codec: value: %w", errTooLarge)
		}
		return nil
	}
	*v = of
	return nil
}
