package tenants_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestErasedPayloadsLeaveJournals: when an erasure with its writer ends, the journal's file holds neither delivered nor
// dropped points of the tenant. Journals of other programs follow within a minute.
func TestErasedPayloadsLeaveJournals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, store, conn, _ := open(t, tsdbtest.Options{})
		mine, others := t.TempDir(), t.TempDir()
		other := second(t, conn, tsdb.Options{})
		w, theirs := newWriter(t, store, mine), newWriter(t, other, others)
		for of, w := range map[*tsdb.Store]*tsdb.Writer{store: w, other: theirs} {
			for i := range 20 {
				at := start.Add(time.Duration(i) * time.Second)
				if err := f.readings.For(of, acme).Via(w).Enqueue(t.Context(), tsdb.NewEntity("a", "b"), at, "payload of acme"); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, dir := range []string{mine, others} {
			if !holds(t, dir, "payload of acme") {
				t.Fatal("the journal holds no delivered payloads before it is idle, so the test proves nothing")
			}
		}
		opts := quick
		opts.Writers = []*tsdb.Writer{w}
		rep, err := tenants.Erase(t.Context(), store, acme, opts)
		if err != nil {
			t.Fatal(err)
		}
		if holds(t, mine, "payload of acme") {
			t.Error("the writer's journal still holds payloads of the tenant")
		}
		if rep.Journals != 1 || !strings.Contains(rep.String(), "Journals:     1 written anew") {
			t.Errorf("the report does not mention the journal:\n%s", rep)
		}
		_ = f.readings.For(other, acme).Via(theirs).Enqueue(t.Context(), tsdb.NewEntity("a", "b"), start, "x") // makes the store read the marks
		for i := 0; i < 60 && holds(t, others, "payload of acme"); i++ {
			_ = f.readings.For(other, acme).Via(theirs).Enqueue(t.Context(), tsdb.NewEntity("a", "b"), start, "x")
			time.Sleep(time.Second)
		}
		if holds(t, others, "payload of acme") {
			t.Error("another program's journal still holds payloads of the tenant after a minute")
		}
		for _, w := range []*tsdb.Writer{w, theirs} {
			if err := w.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// holds reports whether a file of a folder holds the text.
func holds(t *testing.T, dir, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			return true
		}
	}
	return false
}
