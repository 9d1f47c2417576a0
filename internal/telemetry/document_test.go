package telemetry_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// TestDocument checks that docs/telemetry.md names each operation, and each metric with its kind and unit, and no
// others.
func TestDocument(t *testing.T) {
	testkit.Plain(t)
	text, err := os.ReadFile("../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range telemetry.Operations {
		if !strings.Contains(string(text), "`"+name.String()+"`") {
			t.Errorf("operation %s is missing", name)
		}
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:tidemark|db\\.client)\\.[a-z_.]+)` \\| (histogram|counter|up-down counter|gauge), ([^ ]+) \\|").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row[1])
		e, ok := instruments[row[1]]
		kinds := map[string]string{"counter": "counter", "level": "up-down counter", "Gauge[float64]": "gauge", "Histogram[float64]": "histogram", "Histogram[int64]": "histogram"}
		if !ok || kinds[e.kind] != row[2] || e.unit != row[3] {
			t.Errorf("the document has %v, want %+v", row[0], e)
		}
	}
	for name := range instruments {
		if !slices.Contains(documented, name) {
			t.Errorf("metric %s is missing", name)
		}
	}
}
