package testkit

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	var c Clock
	if !c.Now().IsZero() {
		t.Errorf("the zero clock stands at %v", c.Now())
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c.Set(start)
	if c.Add(time.Hour); !c.Now().Equal(start.Add(time.Hour)) {
		t.Errorf("an hour after %v it stands at %v", start, c.Now())
	}
}

// failing is a test that may fail.
type failing struct {
	testing.TB
	failed bool
}

func (*failing) Helper()                 {}
func (f *failing) Errorf(string, ...any) { f.failed = true }

// TestGolden: bytes that differ from the file fail the test.
func TestGolden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "golden")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if *update {
		t.Skip("-update changes the file")
	}
	for text, differs := range map[string]bool{"old": false, "new": true} {
		f := &failing{TB: t}
		if Golden(f, file, text, "it is new"); f.failed != differs {
			t.Errorf("%q against a file with %q: failed %v, want %v", text, "old", f.failed, differs)
		}
	}
}
