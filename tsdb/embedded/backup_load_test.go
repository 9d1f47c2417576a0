package embedded_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

var backups = flag.Int("embedded.backups", 4, "how many backups are made under load")

// loader writes the points 0, 1, 2, ... of an entity, each with its number as value. Every third one is written twice,
// with another value first.
type loader struct {
	entity       tsdb.Entity
	begun, acked atomic.Int64 // points
}

func (l *loader) put(put func(at time.Time, value float64) error) error {
	n := l.begun.Add(1) - 1
	at := noon.Add(time.Duration(n) * time.Second)
	if n%3 == 0 {
		if err := put(at, -1); err != nil {
			return err
		}
	}
	err := put(at, float64(n))
	l.acked.Store(n + 1)
	return err
}

// check compares a copy with what the loader had stored before the backup, and begun by its end.
func (l *loader) check(t *testing.T, store *tsdb.Store, acked, begun int64) {
	t.Helper()
	n := int64(0)
	for p, err := range temps.For(store, acme).Range(t.Context(), l.entity, tsdb.Interval{}, tsdb.OldestFirst) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Time != noon.Add(time.Duration(n)*time.Second) || p.Value != float64(n) && (p.Value != -1 || n < acked) {
			t.Fatalf("%v: point %d is %v at %v; %d were stored before the backup", l.entity, n, p.Value, p.Time, acked)
		}
		n++
	}
	if n < acked || n > begun {
		t.Errorf("%v: the copy has %d points; %d were stored before the backup, and %d begun by its end", l.entity, n, acked, begun)
	}
}

// TestBackupsUnderLoad makes backups while points are written as fast as possible, directly and through a journal. It
// restores each, delivers its journal, and compares it with what was written.
func TestBackupsUnderLoad(t *testing.T) {
	root := t.TempDir()
	store := opened(t, filepath.Join(root, "data"))
	if err := store.Ensure(t.Context(), blobs); err != nil {
		t.Fatal(err)
	}
	w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: filepath.Join(root, "journal")}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var all []*loader
	var work sync.WaitGroup
	repo := temps.For(store, acme)
	for i := range 8 {
		l := &loader{entity: tsdb.NewEntity(fmt.Sprint("writer-", i))}
		all = append(all, l)
		sink := repo.Via(w)
		work.Go(func() {
			for ctx.Err() == nil {
				err := l.put(func(at time.Time, value float64) error {
					if i%2 == 0 {
						return repo.Put(context.Background(), l.entity, at, value)
					}
					done := make(chan error, 1)
					if err := sink.EnqueueFunc(context.Background(), l.entity, at, value, func(o tsdb.Outcome) { done <- o.Err }); err != nil {
						return err
					}
					return <-done
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var stored, allowed atomic.Int64 // large points, which make many table files
	work.Go(func() {
		for ctx.Err() == nil {
			if stored.Load() >= allowed.Load() {
				time.Sleep(time.Millisecond)
				continue
			}
			from := int(stored.Load())
			points := make([]tsdb.Point[[]byte], 50)
			for i := range points {
				points[i] = tsdb.Point[[]byte]{Entity: tsdb.NewEntity("large"), Time: noon.Add(time.Duration(from+i) * time.Second), Value: blob(from + i)}
			}
			if _, err := blobs.For(store, acme).PutMany(context.Background(), points); err != nil {
				t.Error(err)
				return
			}
			stored.Add(int64(len(points)))
		}
	})
	var took, longest time.Duration
	added := int64(0)
	for n := range *backups {
		allowed.Add(500)
		acked, begun, large := make([]int64, len(all)), make([]int64, len(all)), int(stored.Load())
		for i, l := range all {
			acked[i] = l.acked.Load()
		}
		at := func(name string) string { return filepath.Join(root, fmt.Sprintf("%s-%d", name, n)) }
		began := time.Now()
		b, err := store.Backup(t.Context(), at("backup"))
		if err != nil {
			t.Fatal(err)
		}
		took, longest, added = took+time.Since(began), max(longest, time.Since(began)), added+b.Added
		for i, l := range all {
			begun[i] = l.begun.Load()
		}
		if _, err := embedded.VerifyBackup(t.Context(), at("backup")); err != nil {
			t.Fatal(err)
		}
		if _, err := embedded.RestoreBackup(t.Context(), at("backup"), at("copy"), at("journals")); err != nil {
			t.Fatal(err)
		}
		copied := open(t, at("copy"))
		if err := journaled(t, copied, filepath.Join(at("journals"), "journal"), 0, 0).Close(t.Context()); err != nil {
			t.Error(err)
		}
		for i, l := range all {
			l.check(t, copied, acked[i], begun[i])
		}
		checkLarge(t, copied, large)
		if err := copied.Close(); err != nil {
			t.Error(err)
		}
		for _, name := range []string{at("copy"), at("journals"), filepath.Join(root, fmt.Sprint("backup-", n-3))} {
			if err := os.RemoveAll(name); err != nil {
				t.Error(err)
			}
		}
	}
	stop()
	work.Wait()
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
	points := int64(0)
	for _, l := range all {
		points += l.acked.Load()
	}
	t.Logf("%d backups of up to %d points and %d large ones: mean %v, longest %v, %d bytes added", *backups, points, stored.Load(), took/time.Duration(*backups), longest, added)
}

// checkLarge checks the newest 500 large points, of which at least n were stored.
func checkLarge(t *testing.T, store *tsdb.Store, n int) {
	t.Helper()
	points, err := blobs.For(store, acme).LatestN(t.Context(), tsdb.NewEntity("large"), 500)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range points {
		number := int(p.Time.Sub(noon) / time.Second)
		if i == 0 && number < n-1 {
			t.Errorf("the newest large point is number %d; %d were stored before the backup", number, n)
		}
		if !bytes.Equal(p.Value, blob(number)) {
			t.Fatalf("large point %d differs", number)
		}
		if number < n && i > 0 && points[i-1].Time.Sub(p.Time) != time.Second {
			t.Fatalf("a large point after number %d is missing", number)
		}
	}
}
