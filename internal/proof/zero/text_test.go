package zero

import (
	"encoding"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/calls"
	"github.com/tidemark-go/tidemark/tenant"
)

// TestWhatIsReadIsWritten checks that each exported type that reads itself from text or JSON writes itself so: without
// the second, the value marshals in another form, such as a number, which the first does not read.
func TestWhatIsReadIsWritten(t *testing.T) {
	found := 0
	for _, of := range calls.Types {
		p := reflect.PointerTo(of)
		for _, form := range []struct{ reads, writes reflect.Type }{
			{reflect.TypeFor[encoding.TextUnmarshaler](), reflect.TypeFor[encoding.TextMarshaler]()},
			{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[json.Marshaler]()},
		} {
			if !p.Implements(form.reads) {
				continue
			}
			found++
			if !of.Implements(form.writes) {
				t.Errorf("%v is a %v but no %v", of, form.reads, form.writes)
			}
			if of == reflect.TypeFor[tenant.ID]() {
				continue // the zero ID is no tenant
			}
			text, err := json.Marshal(reflect.Zero(of).Interface())
			if err != nil {
				t.Errorf("the zero %v does not marshal: %v", of, err)
				continue
			}
			again := reflect.New(of)
			if err := json.Unmarshal(text, again.Interface()); err != nil {
				t.Errorf("the zero %v marshals as %s, which it does not read: %v", of, text, err)
			} else if !again.Elem().IsZero() {
				t.Errorf("the zero %v marshals as %s, which is read as %v", of, text, again.Elem())
			}
		}
	}
	if found < 6 {
		t.Errorf("only %d types read text or JSON", found)
	}
}
