package cost

import (
	"maps"
	"slices"
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/calls"
)

// TestEveryCallIsCounted fails for a public call that has neither a counted cost nor a reason to have none.
func TestEveryCallIsCounted(t *testing.T) {
	covered := map[string]bool{}
	for _, g := range groupsOfCalls {
		for _, c := range g.calls {
			for _, name := range c.covers {
				covered[name] = covered[name] || !c.detail
			}
		}
	}
	for _, c := range calls.List {
		switch name := c.Name(); {
		case !covered[name] && c.Free == "":
			t.Errorf("the cost of %s is unknown: count it here, or say in internal/proof/calls why it makes no request", name)
		case covered[name] && c.Free != "":
			t.Errorf("%s is counted, but internal/proof/calls says that it makes no request, because it %s", name, c.Free)
		}
		delete(covered, c.Name())
	}
	for _, name := range slices.Sorted(maps.Keys(covered)) {
		t.Errorf("%s is counted, but does not exist", name)
	}
}
