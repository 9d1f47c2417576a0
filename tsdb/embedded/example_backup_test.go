package embedded_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// A folder is copied while it is in use. The copy is checked, and a store is made of it elsewhere.
func Example_backup() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "backup")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	readings := tsdb.MustDefine("readings", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{})
	acme, roof := tenant.MustParse("acme"), tsdb.NewEntity("roof")

	store, err := embedded.Open(ctx, filepath.Join(root, "data"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	err = store.Ensure(ctx, readings)
	if err == nil {
		err = readings.For(store, acme).Put(ctx, roof, time.Now(), 21.5)
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	dir := filepath.Join(root, "backups", "monday")
	if _, err := store.Backup(ctx, dir); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := embedded.VerifyBackup(ctx, dir); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := embedded.RestoreBackup(ctx, dir, filepath.Join(root, "copy"), ""); err != nil {
		fmt.Println(err)
		return
	}

	restored, err := embedded.Open(ctx, filepath.Join(root, "copy"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer restored.Close()
	p, err := readings.For(restored, acme).Latest(ctx, roof)
	fmt.Println(p.Value, err)
	// Output: 21.5 <nil>
}
