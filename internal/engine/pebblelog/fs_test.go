package pebblelog_test

import (
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-go/tidemark/internal/engine/pebblelog"
)

// TestFolderIsSyncedByMany syncs one folder from several goroutines, as compactions and new logs do. It fails under the
// race detector if they share unguarded data.
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
