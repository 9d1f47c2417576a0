package crash_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/crash"
)

// A sector is on the disk as it was at one moment: with its first writes, or with none.
func TestSectorsKeepTheirFirstWrites(t *testing.T) {
	disk, err := crash.NewDisk().After([]crash.Op{
		{Kind: crash.Open, Path: "log", FD: 3, Creates: true},
		{Kind: crash.Open, Path: ".", FD: 4},
		{Kind: crash.Sync, FD: 4},
		{Kind: crash.Write, FD: 3, Data: []byte("first")},
		{Kind: crash.Write, FD: 3, Offset: 5, Data: []byte("second")},
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for seed := range uint64(100) {
		dir := t.TempDir()
		if err := disk.Crash(crash.Loss{Percent: 50, Rand: rand.New(rand.NewPCG(seed, 1))}).Write(dir); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		seen[string(bytes.Trim(data, "\x00"))] = true
	}
	if len(seen) != 3 || !seen[""] || !seen["first"] || !seen["firstsecond"] {
		t.Errorf("got %v, want nothing, the first write, and both", seen)
	}
}
