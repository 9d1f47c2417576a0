package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// OpenReaders returns the number of open reads.
func (e *Engine) OpenReaders() int { return len(e.readers.all()) }

// BeginClose marks the engine as closing, as Close does first.
func (e *Engine) BeginClose() { e.closing.Store(true) }

// Uncompacted returns how many deleted bytes of a table may still be on disk.
func (e *Engine) Uncompacted(table string) int64 { return (*e.tables.Load())[table].garbage.bytes }

// CollectWithRests is RunGC with a function that is called for the rest after each piece of work.
func (e *Engine) CollectWithRests(ctx context.Context, rest func(ctx context.Context, worked time.Duration) error) error {
	return e.runGC(ctx, rest)
}

const DeletionsPerFlush = deletionsPerFlush

// PointsRead reads all rows of a request. It returns how many of Pebble's points the read stepped over, live or
// deleted.
func (e *Engine) PointsRead(ctx context.Context, req *bigtablepb.ReadRowsRequest) (uint64, error) {
	r, err := e.NewReader(ctx, req)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	r.mu.Lock() // as Next does: a flush pauses readers that nobody holds
	defer r.mu.Unlock()
	for more := true; more && err == nil; {
		more, err = r.fill(new(bigtablepb.ReadRowsResponse))
	}
	return r.scan.it.Stats().InternalStats.PointCount, err
}

// BeginFlight begins a write that is in flight until end is called.
func (e *Engine) BeginFlight() (end func()) {
	e.first.begin(e.db.NewBatch())
	w := e.inFlight.add(e.db, nil)
	return func() { e.finishFlight(w, nil) }
}

// Remembered returns how many first rows the engine remembers, and about how many bytes they take.
func (e *Engine) Remembered() (rows, bytes int) {
	for i := range e.first.shards {
		s := &e.first.shards[i]
		s.mu.Lock()
		for _, m := range []map[string]*firstRow{s.fresh, s.old} {
			for _, row := range m {
				if bytes += row.cost; row.known {
					rows++
				}
			}
		}
		s.mu.Unlock()
	}
	return rows, bytes
}

// OpenSnapshots returns how many snapshots the engine holds.
func (e *Engine) OpenSnapshots() int { return e.db.Metrics().Snapshots.Count }

// Flushes counts how often memory was written to table files.
func (e *Engine) Flushes() int64 { return e.db.Metrics().Flush.Count }

// BytesWritten returns how many bytes were written to the log and to table files, by flushes and compactions.
func (e *Engine) BytesWritten() uint64 {
	m := e.db.Metrics()
	n := m.WAL.BytesWritten
	for _, l := range m.Levels {
		n += l.TableBytesFlushed + l.TableBytesCompacted
	}
	return n
}

// Flush writes what is in memory to table files, or returns why the engine has failed.
func (e *Engine) Flush(ctx context.Context) error { return e.flush(ctx) }

// Compact merges all table files.
func (e *Engine) Compact(ctx context.Context) error { return e.compact(ctx, []byte{0}, []byte{0xff}) }

// ForgetTime removes from a folder what time it was, as in one of an earlier version.
func ForgetTime(t testing.TB, fs vfs.FS, dir string) {
	t.Helper()
	e, err := Open(Options{Dir: dir, FS: fs, GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	e.remembers = false
	if err := e.db.Delete(keyHighTime(), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// SetVersion stores the version of a folder's layout; 0 removes it.
func SetVersion(t testing.TB, fs vfs.FS, dir string, version uint32) {
	t.Helper()
	e, err := Open(Options{Dir: dir, FS: fs, GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err = e.db.Set(keyVersion(), binary.BigEndian.AppendUint32(nil, version), pebble.Sync); version == 0 {
		err = e.db.Delete(keyVersion(), pebble.Sync)
	}
	if err := errors.Join(err, e.Close()); err != nil {
		t.Fatal(err)
	}
}

// Tokens returns the number of stored idempotency tokens, or -1.
func (e *Engine) Tokens() (n int) {
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceToken}, UpperBound: []byte{spaceToken + 1}})
	if err != nil {
		return -1
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		n++
	}
	return n
}

// SetWaited sets how long ago a write had to wait for memory; 0 means never.
func (e *Engine) SetWaited(ago time.Duration) {
	e.pressure.waited.Store(nil)
	if ago > 0 {
		at := time.Now().Add(-ago)
		e.pressure.waited.Store(&at)
	}
}

// Iterators returns how many running readers hold an iterator, and so the memtables of its moment.
func (e *Engine) Iterators() (n int) {
	for _, r := range e.readers.all() {
		r.mu.Lock()
		if r.scan.it != nil {
			n++
		}
		r.mu.Unlock()
	}
	return n
}

// ZombieMemtables returns how many memtables were flushed and are still in memory: those that iterators keep, and one
// for reuse.
func (e *Engine) ZombieMemtables() int64 { return e.db.Metrics().MemTable.ZombieCount }

// SetOldBundle stores a schema bundle of a table as earlier versions did.
func (e *Engine) SetOldBundle(table string) error {
	return e.db.Set(append(keyBundles((*e.tables.Load())[table].id), "payloads"...), []byte{recordVersion}, pebble.Sync)
}

// OldBundles counts the schema bundles that earlier versions stored.
func (e *Engine) OldBundles() (n int, err error) {
	err = e.eachRecord([]byte{spaceMeta, 'b'}, func(string, []byte) error { n++; return nil })
	return n, err
}
