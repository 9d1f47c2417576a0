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
		t.Errorf("zero clock: got %v, want the zero time", c.Now())
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c.Set(start)
	if c.Add(time.Hour); !c.Now().Equal(start.Add(time.Hour)) {
		t.Errorf("an hour after %v: got %v", start, c.Now())
	}
}

// failing is a test that records whether it failed.
type failing struct {
	testing.TB
	failed bool
}

func (*failing) Helper()                 {}
func (f *failing) Errorf(string, ...any) { f.failed = true }

// TestGolden checks that Golden fails the test if the text differs from the file.
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
			t.Errorf("%q compared with a file of %q: got failed=%v, want %v", text, "old", f.failed, differs)
		}
	}
}
