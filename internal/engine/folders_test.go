package engine_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

var writeFolder = flag.String("folder.write", "", "a folder that TestFoldersOfOtherBuilds writes, for testdata, instead of reading those there")

// A folder opens whichever build wrote it. testdata holds folders as a crash leaves them, with table files and a log:
// those of a build with cgo whose blocks Snappy compressed, as earlier versions did, and of a build without cgo.
// .ci/run tests the build without cgo, and under the race detector the build with it.
func TestFoldersOfOtherBuilds(t *testing.T) {
	const flushed, rows = 2000, 2100
	value := func(i int) string { return fmt.Sprintf(`{"temp_c":%d.5,"humidity":%d}`, i%30, i%100) }
	key := func(i int) string { return fmt.Sprintf("acme#readings#berlin#roof-7#%06d", i) }
	if dir := *writeFolder; dir != "" {
		live := filepath.Join(t.TempDir(), "live")
		r := open(t, engine.Options{Dir: live})
		r.create(t)
		for _, part := range [][2]int{{0, flushed}, {flushed, rows}} {
			var keys []string
			var muts []*bigtable.Mutation
			for i := part[0]; i < part[1]; i++ {
				keys, muts = append(keys, key(i)), append(muts, set("f", "q", 1000, value(i)))
			}
			if errs, err := r.data.Open(tableID).ApplyBulk(r.ctx, keys, muts); err != nil || errs != nil {
				t.Fatal(err, errs)
			}
			if part[0] == 0 {
				if err := r.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		testkit.CopyOpen(t, dir, live)
		return
	}
	var want []string
	for i := range rows {
		want = append(want, fmt.Sprintf("%s f:q@1000=%s", key(i), value(i)))
	}
	for _, name := range []string{"snappy-cgo", "minlz-purego"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "folder")
			if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))); err != nil {
				t.Fatal(err)
			}
			r := open(t, engine.Options{Dir: dir})
			if got := dump(t, r, bigtable.InfiniteRange("")); !slices.Equal(got, want) {
				t.Errorf("got %d rows, want %d, or rows with other values", len(got), len(want))
			}
			apply(t, r, "row", set("f", "q", 1000, "v"))
			if got := dump(t, r, bigtable.SingleRow("row")); len(got) != 1 {
				t.Errorf("after a write to the folder: got rows %q, want one", got)
			}
		})
	}
}
