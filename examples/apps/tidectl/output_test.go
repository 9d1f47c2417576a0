package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-go/tidemark/examples/internal/adopt"
	"github.com/tidemark-go/tidemark/examples/internal/programtest"
)

// TestErrorsAreClean: an error shows a name from a file. A terminal must not obey what is in the name.
func TestErrorsAreClean(t *testing.T) {
	name := filepath.Join(t.TempDir(), "map.yaml")
	if err := os.WriteFile(name, []byte("\"\\e[2J\\a\\u202e\": 1\ntable: ä\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, stderr := programtest.New(t, "--project", "p", "--instance", "i", "adopt", "check", name)
	if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), `\x1b[2J\a\u202e`) || strings.ContainsAny(stderr.String(), "\x1b\a\u202e") {
		t.Errorf("the program ends with %v and prints %q, want the name with escapes", err, stderr)
	}
	const usual = "tidectl: map.yaml has mistakes:\n\tline 1: \"\\x00\" größer als 1 € 😀"
	if got := clean(usual); got != usual {
		t.Errorf("clean changes %q to %q", usual, got)
	}
}

// TestTwoCopiesOfOneState saves states of two copies to one file at the same time. The file must always hold one of
// them.
func TestTwoCopiesOfOneState(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "state")
	var wg sync.WaitGroup
	for n := range 2 {
		wg.Go(func() {
			state := adopt.State{Mapping: strings.Repeat(fmt.Sprint(n), 1000*(n+1)), Ranges: []adopt.Range{{}}}
			for range 100 {
				if err := saveState(name, state); err != nil {
					t.Errorf("save: %v", err)
					return
				}
				if _, err := readState(name); err != nil {
					t.Errorf("read: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("the folder has %d files, %v, want the state alone", len(files), err)
	}
	if err := saveState(filepath.Join(dir, "no folder", "state"), adopt.State{}); err == nil {
		t.Error("a state is saved in a folder that does not exist")
	}
}
