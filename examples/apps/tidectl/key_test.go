package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestReadKey: only its owner may read a key's file. A newline at its end is not part of the key.
func TestReadKey(t *testing.T) {
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, []byte(strings.Repeat("k", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := readKey(name); err != nil || string(key) != strings.Repeat("k", 32) {
		t.Errorf("key %q, error %v", key, err)
	}
	if key, err := readKey(""); err != nil || key != nil {
		t.Errorf("without a file: %q, %v", key, err)
	}
	if _, err := readKey(name + "x"); err == nil {
		t.Error("reading a missing file succeeds")
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(name, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := readKey(name); err == nil || !strings.Contains(err.Error(), "0640") {
		t.Errorf("a file that others can read: %v", err)
	}
}
