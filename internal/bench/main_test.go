package bench

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain prints the most memory that the process has had at once, if benchmarks ran: run one alone to see what it needs.
func TestMain(m *testing.M) {
	code := m.Run()
	if peak, ok := peakMemory(); ok && flag.Lookup("test.bench").Value.String() != "" {
		fmt.Printf("peak memory of the process: %.0f MiB\n", peak)
	}
	os.Exit(code)
}
