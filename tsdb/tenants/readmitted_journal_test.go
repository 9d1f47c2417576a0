package tenants_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestReadmissionBringsNothingBack: a journal that outlives an erasure and a readmission delivers points of other
// tenants and, of the tenant, only those written after its readmission. The same holds for a journal that is older than
// generations in records.
func TestReadmissionBringsNothingBack(t *testing.T) {
	for name, age := range map[string]func(testing.TB, string) string{
		"a journal of now":    func(_ testing.TB, dir string) string { return dir },
		"a journal of before": withoutGenerations,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f, store, conn, table := open(t, tsdbtest.Options{})
				dir := age(t, fullJournal(t, f, store, conn))
				if _, err := tenants.Erase(t.Context(), store, acme, quick); err != nil {
					t.Fatal(err)
				}
				if err := tenants.Readmit(t.Context(), store, acme); err != nil {
					t.Fatal(err)
				}
				w := newWriter(t, second(t, conn, tsdb.Options{}), dir)
				if err := w.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				erasedInTime(t, w, 151, 1)
				if left := dump(t, table, ofTenant("acme")); len(left) > 0 {
					t.Errorf("rows from before the erasure: %v", left)
				}
				if n := len(dump(t, table, ofTenant("acme2"))); n != 151 {
					t.Errorf("the other tenant has %d rows, want 150 points and a head", n)
				}
				if err := w.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				// Points after the readmission, kept in the journal over a restart.
				other := second(t, conn, tsdb.Options{})
				hold(t, conn, newWriter(t, other, dir), func(w *tsdb.Writer) error {
					return f.readings.For(other, acme).Via(w).Enqueue(t.Context(), tsdb.NewEntity("new", "x"), start, "x")
				}, other, f)
				deliver(t, conn, dir)
				if n := len(dump(t, table, ofTenant("acme"))); n != 1 {
					t.Errorf("%d rows written after the readmission, want 1", n)
				}
			})
		})
	}
}

// TestReadmissionOfAnEntity: of an entity that was erased and readmitted, a journal delivers only points written
// afterwards.
func TestReadmissionOfAnEntity(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, store, conn, table := open(t, tsdbtest.Options{})
		dir := fullJournal(t, f, store, conn)
		fields := map[string]string{"site": "late", "device": "x"}
		if _, err := tenants.EraseEntity(t.Context(), store, acme, "", fields, quick); err != nil {
			t.Fatal(err)
		}
		other := second(t, conn, tsdb.Options{})
		put := func(w *tsdb.Writer, at time.Time) error {
			return f.readings.For(other, acme).Via(w).Enqueue(t.Context(), tsdb.NewEntity("late", "x"), at, "x")
		}
		if err := tenants.ReadmitEntity(t.Context(), store, acme, "", fields); err != nil {
			t.Fatal(err)
		}
		time.Sleep(tenancy.ErasedWithin + time.Second)
		hold(t, conn, newWriter(t, other, dir), func(w *tsdb.Writer) error { return put(w, start.Add(-2*time.Hour)) }, other, f)
		deliver(t, conn, dir)
		rows := dump(t, table, func(key string) bool { return strings.HasPrefix(key, "acme#") && strings.Contains(key, "late#x") })
		if len(rows) != 1 {
			t.Errorf("%d rows of the entity, want the one written after the readmission: %v", len(rows), rows)
		}
		if n := len(dump(t, table, ofTenant("acme"))); n != 1+51 {
			t.Errorf("%d rows of the tenant, want one of the entity, and 50 points and a head of the other entity", n)
		}
	})
}

// TestWithoutKnowledgeOfMarks: a program that starts while the table cannot be read accepts points of a tenant that was
// readmitted before, and delivers them.
func TestWithoutKnowledgeOfMarks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, store, conn, table := open(t, tsdbtest.Options{})
		if _, err := tenants.Erase(t.Context(), store, acme, quick); err != nil {
			t.Fatal(err)
		}
		if err := tenants.Readmit(t.Context(), store, acme); err != nil {
			t.Fatal(err)
		}
		dir, other := t.TempDir(), second(t, conn, tsdb.Options{})
		conn.Outage()
		w := newWriter(t, other, dir)
		if err := f.readings.For(other, acme).Via(w).Enqueue(t.Context(), tsdb.NewEntity("new", "x"), start, "x"); err != nil {
			t.Fatal(err)
		}
		closeUndelivered(t, w)
		conn.Clear()
		deliver(t, conn, dir)
		if n := len(dump(t, table, ofTenant("acme"))); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
	})
}

// hold enqueues a point while nothing can be delivered, and closes the writer, so that the journal holds the point. The
// store has read the marks before.
func hold(t *testing.T, conn *tsdbtest.Conn, w *tsdb.Writer, put func(*tsdb.Writer) error, store *tsdb.Store, f fleet) {
	t.Helper()
	if _, err := f.readings.For(store, tenant.MustParse("other")).Latest(t.Context(), tsdb.NewEntity("a", "b")); !errors.Is(err, tsdb.ErrNotFound) {
		t.Fatal(err)
	}
	conn.Inject(tsdbtest.Fail(codes.Unavailable))
	if err := put(w); err != nil {
		t.Fatal(err)
	}
	closeUndelivered(t, w)
	conn.Clear()
}

func closeUndelivered(t *testing.T, w *tsdb.Writer) {
	t.Helper()
	closed, cancel := contextOver(t)
	defer cancel()
	if err := w.Close(closed); !errors.Is(err, tsdb.ErrUndelivered) {
		t.Fatalf("Close: %v", err)
	}
}

// deliver opens a journal as another process would, and delivers its points.
func deliver(t *testing.T, conn *tsdbtest.Conn, dir string) {
	t.Helper()
	w := newWriter(t, second(t, conn, tsdb.Options{}), dir)
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// erasedInTime waits until dead letters are dropped, which happens in the background.
func erasedInTime(t *testing.T, w *tsdb.Writer, erased uint64, letters int) {
	t.Helper()
	s := w.Stats().Journal
	for i := 0; i < 60 && (s.DeadLetters != letters || s.Erased != erased); i++ {
		time.Sleep(time.Second)
		s = w.Stats().Journal
	}
	if s.DeadLetters != letters || s.Erased != erased {
		t.Errorf("stats %+v, want %d dropped and %d dead letters left", s, erased, letters)
	}
}

// withoutGenerations copies a journal into the format from before records had generations.
func withoutGenerations(t testing.TB, dir string) string {
	t.Helper()
	ctx, old := context.Background(), t.TempDir()
	from := openSpool(t, dir)
	defer from.Close()
	to := openSpool(t, old)
	defer to.Close()
	for name, text := range from.Metas() {
		if number, ok := strings.CutPrefix(name, "point/"); ok {
			if err := to.SetMeta(ctx, "dataset/"+number, text); err != nil {
				t.Fatal(err)
			}
		}
	}
	strip := func(data []byte) []byte {
		_, n := binary.Uvarint(data)
		_, m := binary.Uvarint(data[n:])
		return append(append([]byte{}, data[:n]...), data[n+m:]...)
	}
	for d, err := range from.Dead(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		seq, err := to.Append(ctx, [][]byte{strip(d.Data)})
		if err == nil {
			err = to.Bury(ctx, spool.Dead{Seq: seq, Reason: d.Reason, Attempts: d.Attempts})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	records, err := from.Read(ctx, 0, 1000, 1<<20)
	if err != nil || len(records) != 300 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for _, r := range records {
		if _, err := to.Append(ctx, [][]byte{strip(r.Data)}); err != nil {
			t.Fatal(err)
		}
	}
	return old
}

func openSpool(t testing.TB, dir string) *spool.Spool {
	t.Helper()
	s, err := spool.Open(dir, spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestIdleStoreLearnsOfReadmission: a store that was idle while a tenant was erased and readmitted stores a new point
// of it as written after the readmission.
func TestIdleStoreLearnsOfReadmission(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, store, conn, table := open(t, tsdbtest.Options{})
		other := second(t, conn, tsdb.Options{})
		w := newWriter(t, other, t.TempDir())
		if err := f.readings.For(other, tenant.MustParse("other")).Via(w).Enqueue(t.Context(), tsdb.NewEntity("a", "b"), start, "x"); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if _, err := tenants.Erase(t.Context(), store, acme, quick); err != nil {
			t.Fatal(err)
		}
		if err := tenants.Readmit(t.Context(), store, acme); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := f.readings.For(other, acme).Via(w).Enqueue(t.Context(), tsdb.NewEntity("new", "life"), start, "x"); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(dump(t, table, ofTenant("acme"))); n != 1 || w.Stats().Journal.Erased != 0 {
			t.Errorf("%d rows written after the readmission, %d points dropped; want 1 and 0", n, w.Stats().Journal.Erased)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
