package pebblelog

import (
	"os"
	"strings"
	"testing"
)

// TestPebbleVersion fails if go.mod requires another version of Pebble than Check knows: it may write logs in another
// format, and Check would miss damage or report damage where there is none.
func TestPebbleVersion(t *testing.T) {
	module, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/cockroachdb/pebble/v2 " + PebbleVersion + "\n"; !strings.Contains(string(module), want) {
		t.Errorf("go.mod does not require %q: see the package comment for what to check first", strings.TrimSpace(want))
	}
}
