package catalog

import (
	"maps"
	"testing"
)

// FuzzParseAssignment checks that no bytes in a profile column cause a panic, and that a stored assignment is read back
// unchanged.
func FuzzParseAssignment(f *testing.F) {
	f.Add([]byte(`{"retention":"d30"}`))
	f.Add([]byte(`{"classes":{"readings":"d7"}}`))
	f.Add([]byte(`{"retention":7}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		seen := map[string]*Assignment{}
		a := parseAssignment(seen, text)
		if a == nil {
			return
		}
		if again := parseAssignment(seen, text); again != a {
			t.Error("equal assignments do not share memory")
		}
		again := parseAssignment(map[string]*Assignment{}, assignedText(*a))
		if again == nil {
			if a.Retention != "" || len(a.Classes) > 0 {
				t.Errorf("%+v: the stored assignment does not parse", a)
			}
			return
		}
		if again.Retention != a.Retention || !maps.Equal(again.Classes, a.Classes) {
			t.Errorf("got %+v, want %+v", again, a)
		}
	})
}

// TestAssignmentOf checks that a profile's class for one dataset takes precedence over its class for all datasets.
func TestAssignmentOf(t *testing.T) {
	a := Assignment{Retention: "d30", Classes: map[string]string{"r": "d7"}}
	if a.Of("r") != "d7" || a.Of("r2") != "d30" || (&Assignment{}).Of("r") != "" {
		t.Error(a.Of("r"), a.Of("r2"))
	}
}
