package cost

import (
	"fmt"
	"testing"
)

var groupsOfCalls = []group{writes, writers, reads, prefixes, deletions, stores, rollups, life}

func TestProbe(t *testing.T) {
	for _, g := range groupsOfCalls {
		for _, c := range g.calls {
			got := c.measure(t)
			for i, f := range got.figures {
				fmt.Printf("%-60s n=%-6d %v seen %d ret %d written %d sent %d recv %d up %d/%d/%d\n", c, c.at()[i], f.calls, f.seen, f.returned, f.written, f.sent, f.received, f.upkeep, f.upSent, f.upReceived)
			}
		}
	}
}
