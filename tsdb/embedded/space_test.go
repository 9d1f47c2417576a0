package embedded_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// TestExpiredPointsGiveTheirSpaceBack: after all points and their heads have expired, the open folder shrinks to about
// the size of an empty one, without any call. Unexpired points stay.
func TestExpiredPointsGiveTheirSpaceBack(t *testing.T) {
	testkit.Plain(t)
	synctest.Test(t, giveSpaceBack)
}

func giveSpaceBack(t *testing.T) {
	begin := time.Now()
	opts := tsdb.SchemaOptions{
		Retention: gc.Class{Name: "d1", Policy: gc.MaxAge(24 * time.Hour)},
		Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 3},
	}
	frames := tsdb.MustDefine("frames", tsdb.Key("camera"), codec.Bytes(), opts)
	dir := t.TempDir()
	store, err := embedded.New(t.Context(), embedded.Options{
		Dir: dir, NoSync: true, GCInterval: time.Hour, Exclusive: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(t.Context(), frames, temps); err != nil {
		t.Fatal(err)
	}
	if err := temps.For(store, acme).Put(t.Context(), roof, begin, 1); err != nil {
		t.Fatal(err)
	}
	repo := frames.For(store, acme)
	x := uint64(1)
	for camera := range 10 {
		var points []tsdb.Point[[]byte]
		for n := range 200 {
			value := make([]byte, 0, 4<<10)
			for len(value) < cap(value) {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
				value = binary.LittleEndian.AppendUint64(value, x)
			}
			at := begin.Add(-time.Duration(n) * time.Minute)
			points = append(points, tsdb.Point[[]byte]{Entity: tsdb.NewEntity(strconv.Itoa(camera)), Time: at, Value: value})
		}
		if _, err := repo.PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
	}
	if size := folderSize(t, dir); size < 4<<20 { // some data may not be on disk yet
		t.Fatalf("the folder has %d bytes with 8 MB of points", size)
	}
	time.Sleep(48 * time.Hour)
	size := int64(0)
	for range 1500 { // files are deleted in the background
		if size = folderSize(t, dir); size < 1<<20 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if size >= 1<<20 {
		t.Errorf("with all points expired the folder has %d bytes", size)
	}
	if p, err := temps.For(store, acme).Latest(t.Context(), roof); err != nil || p.Value != 1 {
		t.Errorf("the point that never expires is %v, %v", p, err)
	}
}

// folderSize returns the size of all files of a folder.
func folderSize(t *testing.T, dir string) (total int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // the file has just been deleted
		}
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return total
}
