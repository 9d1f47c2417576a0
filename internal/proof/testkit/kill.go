package testkit

import (
	"bufio"
	"os"
	"os/exec"
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
