package spool_test

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/tidemark-go/tidemark/internal/spool"
)

// Records of 200 bytes from several appenders, each with a number of them at once; what is on disk counts as delivered at
// once. raw stores each record under a key of its own, with bbolt's own way to share a commit, and removes nothing.
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

// spread runs an operation of some records on several goroutines.
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
