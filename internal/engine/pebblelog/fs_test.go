package pebblelog_test

import (
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-go/tidemark/internal/engine/pebblelog"
)

// TestFolderIsSyncedByMany: compactions and new logs sync one folder at the same time. The race detector sees what they share.
func TestFolderIsSyncedByMany(t *testing.T) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll("data", 0o700); err != nil {
		t.Fatal(err)
	}
	fs := pebblelog.FS{FS: mem, Failed: func() error { return nil }, Fail: func(err error) { t.Error(err) }}
	dir, err := fs.OpenDir("data")
	if err != nil {
		t.Fatal(err)
	}
	var syncs sync.WaitGroup
	for range 2 {
		syncs.Go(func() {
			for range 100 {
				if err := dir.Sync(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	syncs.Wait()
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
}
