package spool_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// BenchmarkAppend appends records of 200 bytes from several goroutines, with several records a call; each record is
// done as soon as it is stored. The case raw stores each record under its own key with bbolt's Batch, and removes
// nothing.
func BenchmarkAppend(b *testing.B) {
	for _, bb := range []struct{ appenders, each int }{{1, 1}, {16, 1}, {1, 100}, {4, 100}, {16, 100}} {
		records := make([][]byte, bb.each)
		for i := range records {
			records[i] = make([]byte, 200)
		}
		name := fmt.Sprintf("%dx%d", bb.appenders, bb.each)
		b.Run(name+"/raw", func(b *testing.B) {
			db, err := bolt.Open(filepath.Join(b.TempDir(), "raw"), 0o600, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			var next atomic.Uint64
			spread(b, bb.appenders, bb.each, func() error {
				return db.Batch(func(tx *bolt.Tx) error {
					table, err := tx.CreateBucketIfNotExists([]byte("records"))
					if err != nil {
						return err
					}
					for _, r := range records {
						if err := table.Put(binary.BigEndian.AppendUint64(nil, next.Add(1)), r); err != nil {
							return err
						}
					}
					return nil
				})
			})
		})
		b.Run(name+"/spool", func(b *testing.B) {
			s, err := spool.Open(b.TempDir(), spool.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			ctx := b.Context()
			spread(b, bb.appenders, bb.each, func() error {
				first, err := s.Append(ctx, records)
				for i := range uint64(len(records)) {
					s.Done(first + i)
				}
				return err
			})
		})
	}
}

// spread runs an operation of n records on several goroutines.
func spread(b *testing.B, goroutines, records int, op func() error) {
	turns := make(chan struct{})
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range turns {
				if err := op(); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		turns <- struct{}{}
		n++
	}
	close(turns)
	wg.Wait()
	b.ReportMetric(float64(n*records)/b.Elapsed().Seconds(), "records/s")
}

var openBytes = flag.Int64("spool.open", 32<<20, "size of the journal that BenchmarkOpen opens, in bytes")

// Open reads and checks all records that are to be delivered.
func BenchmarkOpen(b *testing.B) {
	dir, o := b.TempDir(), spool.Options{MaxBytes: *openBytes + *openBytes/8, NoSync: true}
	s, err := spool.Open(dir, o)
	if err != nil {
		b.Fatal(err)
	}
	records := make([][]byte, 1000)
	for i := range records {
		records[i] = make([]byte, 200)
	}
	for s.Stats().Bytes < *openBytes {
		if _, err := s.Append(b.Context(), records); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(*openBytes)
	b.ReportAllocs()
	for b.Loop() {
		s, err := spool.Open(dir, o)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead reads 1,000 records of 200 bytes a call.
func BenchmarkRead(b *testing.B) {
	s, err := spool.Open(b.TempDir(), spool.Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	records := make([][]byte, 1000)
	for i := range records {
		records[i] = make([]byte, 200)
	}
	for range 50 {
		if _, err := s.Append(b.Context(), records); err != nil {
			b.Fatal(err)
		}
	}
	from, n := uint64(0), 0
	b.ReportAllocs()
	for b.Loop() {
		list, err := s.Read(b.Context(), from, 1000, 1<<20)
		if err != nil {
			b.Fatal(err)
		}
		n += len(list)
		if from = 0; len(list) > 0 {
			from = list[len(list)-1].Seq + 1
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
}
