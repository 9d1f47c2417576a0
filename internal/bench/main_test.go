package bench

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain prints the most memory that the process has had at once, if benchmarks ran: run one alone to see what it
// needs.
func TestMain(m *testing.M) {
	if dir := os.Getenv(attachedFolder); dir != "" {
		if err := exportForever(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if peak, ok := peakMemory(); ok && flag.Lookup("test.bench").Value.String() != "" {
		fmt.Printf("peak memory of the process: %.0f MiB\n", peak)
	}
	os.Exit(code)
}

// sized returns how many points a benchmark stores before it begins: at most 5,000 with -short, which only shows that
// it works.
func sized(points int) int {
	if testing.Short() {
		return min(points, 5000)
	}
	return points
}
