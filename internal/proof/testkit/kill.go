package testkit

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// KillAfter runs the test binary with additional environment variables, passes each line of its output to enter, and
// kills the process after a while. The test fails if the process ends earlier.
func KillAfter(t testing.TB, after time.Duration, enter func(line string) error, env ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if err := enter(lines.Text()); err != nil {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the process ended before it was killed: %v", err)
	}
}

// Acked prints that all writes of a goroutine up to number n are acknowledged. KillAcked reads it.
func Acked(goroutine, n int) { fmt.Printf("acked %d %d .\n", goroutine, n) }

// KillAcked runs one test of the test binary in another process, with additional environment variables, and kills it up
// to 400 ms after the first Acked. It returns the last number of each goroutine. The test fails if the process
// acknowledges nothing.
func KillAcked(t testing.TB, test string, goroutines int, env ...string) (acked []int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	acked = make([]int, goroutines)
	n := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var g, last int
		var end string
		if _, err := fmt.Sscanf(lines.Text(), "acked %d %d %s", &g, &last, &end); err != nil || end != "." {
			continue // half a line: the process was killed
		}
		if n++; n == 1 {
			timer.Reset(time.Duration(rand.IntN(400)) * time.Millisecond)
		}
		acked[g] = last
	}
	_ = cmd.Wait()
	if n == 0 {
		t.Fatalf("the process acknowledged nothing:\n%s", stderr.String())
	}
	return acked
}
