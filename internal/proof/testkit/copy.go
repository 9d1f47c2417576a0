package testkit

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// CopyOpen copies the folder of an open store to a new folder, as a killed process leaves it. The store may rename a
// file while it is copied: then the copy is made again.
func CopyOpen(t testing.TB, to, from string) {
	t.Helper()
	err := os.CopyFS(to, os.DirFS(from))
	for tries := 1; errors.Is(err, fs.ErrNotExist) && tries < 10; tries++ {
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		err = os.CopyFS(to, os.DirFS(from))
	}
	if err != nil {
		t.Fatal(err)
	}
}
