package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestCopyOpen: a file that is renamed while its folder is copied does not fail the copy.
func TestCopyOpen(t *testing.T) {
	above := t.TempDir()
	for i := range 5 {
		from, to := filepath.Join(above, fmt.Sprint("from", i)), filepath.Join(above, fmt.Sprint("to", i))
		if err := os.Mkdir(from, 0o700); err != nil {
			t.Fatal(err)
		}
		for n := range 20 {
			if err := os.WriteFile(filepath.Join(from, fmt.Sprintf("%02d.new", n)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		renamed := make(chan error)
		go func() {
			for { // until the copy has begun
				if entries, _ := os.ReadDir(to); len(entries) > 0 {
					break
				}
			}
			renamed <- os.Rename(filepath.Join(from, "19.new"), filepath.Join(from, "19"))
		}()
		CopyOpen(t, to, from)
		if err := <-renamed; err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(to)
		if err != nil || len(entries) != 20 {
			t.Errorf("the copy has %d files, %v, want 20", len(entries), err)
		}
	}
}
