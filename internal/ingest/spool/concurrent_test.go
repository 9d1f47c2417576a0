package spool_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// TestAllAtOnce appends records while other goroutines read, mark, bury and revive records and read statistics, and
// while the file is rewritten. Each record is delivered once, and the records of one appender in their order.
func TestAllAtOnce(t *testing.T) {
	const appenders, each = 4, 3000
	s := open(t, t.TempDir(), spool.Shrinking(spool.Options{NoSync: true, MaxBytes: 4 << 20}, 256<<10))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var appending, looking sync.WaitGroup
	for a := range uint64(appenders) {
		appending.Go(func() {
			r := rand.New(rand.NewPCG(*seed, a))
			for n := uint64(0); n < each; {
				var records [][]byte
				for range min(1+r.Uint64N(50), each-n) {
					record := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, a), n)
					records, n = append(records, append(record, make([]byte, r.IntN(800))...)), n+1
				}
				for {
					_, err := s.Append(ctx, records)
					if err == nil {
						break
					}
					if !errors.Is(err, spool.ErrFull) || s.Room(ctx, records) != nil {
						t.Errorf("append: %v", err)
						return
					}
				}
			}
		})
	}
	looking.Go(func() {
		for s.Stats().Next < appenders*each && ctx.Err() == nil {
			if _, err := s.Read(ctx, s.Stats().First, 100, 1<<20); err != nil {
				t.Errorf("read: %v", err)
			}
			for _, err := range s.Dead(ctx) {
				if err != nil {
					t.Errorf("dead: %v", err)
				}
			}
		}
	})
	r := rand.New(rand.NewPCG(*seed, 100))
	var last [appenders]uint64
	once := map[[2]uint64]bool{}
	revived := map[[2]uint64]bool{}
	for from := uint64(0); len(once) < appenders*each; {
		list, err := s.Read(ctx, from, 300, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 && len(revived) > 0 || len(list) > 250 {
			var ids []uint64
			for d := range s.Dead(ctx) {
				ids = append(ids, d.ID)
			}
			if _, err := s.Revive(ctx, ids...); err != nil {
				t.Fatal(err)
			}
		}
		for _, rec := range list {
			from = rec.Seq + 1
			a, n := binary.BigEndian.Uint64(rec.Data), binary.BigEndian.Uint64(rec.Data[8:])
			k := [2]uint64{a, n}
			if r.IntN(100) == 0 && !revived[k] {
				revived[k] = true
				if err := s.Bury(ctx, spool.Dead{Seq: rec.Seq}); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if once[k] {
				t.Errorf("record %d of appender %d was delivered twice", n, a)
			}
			if !revived[k] && n < last[a] {
				t.Errorf("got record %d of appender %d after record %d", n, a, last[a])
			}
			once[k], last[a] = true, max(last[a], n)
			s.Done(rec.Seq)
		}
	}
	appending.Wait()
	looking.Wait()
	if st := s.Stats(); st.Records != 0 || st.Bytes != 0 || st.Next != appenders*each+uint64(len(revived)) {
		t.Errorf("after all were delivered and %d revived: got %+v", len(revived), st)
	}
}

// While the disk hangs, a queued call can give up, and nothing was stored. A call whose commit is running gets
// ErrUnsure.
func TestStuckDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, release := make(chan struct{}), make(chan struct{})
		s := open(t, t.TempDir(), spool.Options{NoSync: true, Clock: func() time.Time {
			close(stuck)
			<-release
			return time.Now()
		}})
		appendAll(t, s, "a")
		ctx, cancel := context.WithCancel(t.Context())
		served, waiting := make(chan error), make(chan error)
		go func() { served <- s.Bury(ctx, spool.Dead{Seq: 0}) }()
		<-stuck
		go func() { waiting <- second(s.Append(ctx, [][]byte{[]byte("b")})) }()
		synctest.Wait()
		cancel()
		if err := <-served; !errors.Is(err, spool.ErrUnsure) || !errors.Is(err, context.Canceled) {
			t.Errorf("call whose commit was running: got %v, want ErrUnsure", err)
		}
		if err := <-waiting; !errors.Is(err, context.Canceled) || errors.Is(err, spool.ErrUnsure) {
			t.Errorf("queued call: got %v, want the context's error", err)
		}
		want(t, "records meanwhile", all(t, s), []string{"0:a"})
		close(release)
		if first := appendAll(t, s, "c"); first != 1 {
			t.Errorf("got sequence number %d, want 1: a call that gave up in time was appended", first)
		}
		want(t, "records", all(t, s), []string{"1:c"})
	})
}

// Records that become done while a commit rewrites or marks their block stay done, in memory and on disk.
func TestDoneDuringACommit(t *testing.T) {
	for name, size := range map[string]int{"written again": 1, "noted": 2000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { doneDuringACommit(t, size) })
		})
	}
}

func doneDuringACommit(t *testing.T, size int) {
	stuck, release := make(chan struct{}), make(chan struct{})
	dir := t.TempDir()
	s := open(t, dir, spool.Options{NoSync: true, Clock: func() time.Time {
		stuck <- struct{}{}
		<-release
		return time.Now()
	}})
	var wg sync.WaitGroup
	bury := func(seq uint64) {
		wg.Go(func() {
			if err := s.Bury(t.Context(), spool.Dead{Seq: seq}); err != nil {
				t.Error(err)
			}
		})
	}
	left := func(s *spool.Spool) (seqs []uint64) {
		list, err := s.Read(t.Context(), 0, 100, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			seqs = append(seqs, r.Seq)
		}
		return seqs
	}
	record := strings.Repeat("x", size)
	appendAll(t, s, record, record, record, record, record)
	bury(0)
	<-stuck
	s.Done(1)
	bury(2)
	wg.Go(func() { appendAll(t, s, record, record) }) // In the same commit as the burial.
	synctest.Wait()
	release <- struct{}{}
	<-stuck
	if got := left(s); !slices.Equal(got, []uint64{2, 3, 4}) {
		t.Errorf("during the commit: got %d records", got)
	}
	s.Done(3)
	release <- struct{}{}
	wg.Wait()
	if got := left(s); !slices.Equal(got, []uint64{4, 5, 6}) {
		t.Errorf("after the commit: got %d records", got)
	}
	time.Sleep(time.Second)
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if got := left(open(t, copied, spool.Options{NoSync: true})); !slices.Equal(got, []uint64{4, 5, 6}) {
		t.Errorf("after a crash of the process: got %d records", got)
	}
}
