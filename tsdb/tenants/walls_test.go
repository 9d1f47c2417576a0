package tenants_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// lying replaces rows whose keys start with from by rows of others.
type lying struct {
	grpc.ClientStream
	from *string
}

func (l lying) RecvMsg(m any) error {
	err := l.ClientStream.RecvMsg(m)
	if res, ok := m.(*btpb.ReadRowsResponse); ok && err == nil && *l.from != "" {
		for _, c := range res.Chunks {
			if bytes.HasPrefix(c.RowKey, []byte(*l.from)) {
				c.RowKey = append([]byte("acme2"), c.RowKey[len("acme"):]...)
			}
		}
	}
	return err
}

// TestRowsOfOthersAreNotErased: if a service or proxy returns other rows than requested, none of them is deleted or
// counted.
func TestRowsOfOthersAreNotErased(t *testing.T) {
	from := ""
	spy := grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, cc, name, opts...)
		return lying{s, &from}, err
	})
	f, store, _, table := open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{spy}})
	for _, n := range []string{"acme", "acme2"} {
		f.fill(t, store, tenant.MustParse(n))
	}
	if err := table.Apply(t.Context(), "acme#a row of another program", newCell()); err != nil {
		t.Fatal(err)
	}
	before := dump(t, table, others("none"))
	fields := map[string]string{"site": "site#1", "device": "dev 0"}
	for name, call := range map[string]struct {
		from string
		do   func() error
	}{
		"Erase": {"acme#", func() error {
			_, err := tenants.Erase(t.Context(), store, acme, quick)
			return err
		}},
		"Erase, in the middle": {"acme#readings#", func() error {
			_, err := tenants.Erase(t.Context(), store, acme, quick)
			return err
		}},
		"EraseEntity": {"acme#readings#", func() error {
			_, err := tenants.EraseEntity(t.Context(), store, acme, "", fields, quick)
			return err
		}},
		"EraseEntity, of a head": {"acme#last!", func() error {
			_, err := tenants.EraseEntity(t.Context(), store, acme, "last", fields, quick)
			return err
		}},
		"Usage": {"acme#readings#", func() error {
			_, err := tenants.Usage(t.Context(), store, acme, tenants.UsageOptions{})
			return err
		}},
		"List": {"acme#e", func() error {
			for _, err := range tenants.List(t.Context(), store, tenants.ListOptions{}) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		from = call.from
		if err := call.do(); !errors.Is(err, tsdb.ErrForeignRow) {
			t.Errorf("%s: %v, want ErrForeignRow", name, err)
		}
		from = ""
		equal(t, name, dump(t, table, others("none")), before)
	}
}

// TestARangeThatWasTakenOver: the tenant was readmitted meanwhile, and what it has stored since is not deleted.
func TestARangeThatWasTakenOver(t *testing.T) {
	f, store, conn, table := open(t, tsdbtest.Options{})
	other := second(t, conn, tsdb.Options{})
	f.fill(t, store, acme)
	opts, over := quick, false
	opts.Range = true
	opts.Progress = func(p tenants.Progress) {
		if p.State != tenants.Deleting || over {
			return
		}
		over = true
		if _, err := tenants.Erase(t.Context(), other, acme, quick); err != nil {
			t.Error(err)
		}
		if err := tenants.Readmit(t.Context(), other, acme); err != nil {
			t.Error(err)
		}
		if err := f.readings.For(other, acme).Put(t.Context(), tsdb.NewEntity("new", "life"), start, "x"); err != nil {
			t.Error(err)
		}
	}
	if _, err := tenants.Erase(t.Context(), store, acme, opts); !errors.Is(err, tenants.ErrTakenOver) {
		t.Error(err)
	}
	if n := len(dump(t, table, ofTenant("acme"))); n != 1 {
		t.Errorf("%d rows, want the new one", n)
	}
}

// TestAJournalBringsNoEntityBack: a process with a full journal, started after one entity was erased, drops the
// entity's points in each dataset and delivers the rest.
func TestAJournalBringsNoEntityBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, store, conn, table := open(t, tsdbtest.Options{})
		dir := fullJournal(t, f, store, conn)
		if _, err := tenants.EraseEntity(t.Context(), store, acme, "", map[string]string{"site": "late", "device": "x"}, quick); err != nil {
			t.Fatal(err)
		}
		other := second(t, conn, tsdb.Options{})
		w := newWriter(t, other, dir)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := w.Stats().Journal; s.Points != 0 || s.Erased != 100 || s.DeadLetters != 2 {
			t.Errorf("stats %+v, want the 100 points of the entity dropped", s)
		}
		if mine, others := len(dump(t, table, ofTenant("acme"))), len(dump(t, table, ofTenant("acme2"))); mine != 51 || others != 151 {
			t.Errorf("%d rows, and %d of another tenant; want 51 and 151", mine, others)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
