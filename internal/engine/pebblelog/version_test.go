package pebblelog

import (
	"os"
	"strings"
	"testing"
)

// TestPebbleVersion: a new version of Pebble may write its logs in another way, which Check would take for damage or miss.
func TestPebbleVersion(t *testing.T) {
	module, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/cockroachdb/pebble/v2 " + PebbleVersion + "\n"; !strings.Contains(string(module), want) {
		t.Errorf("go.mod does not require %q: see the package comment for what to check first", strings.TrimSpace(want))
	}
}
