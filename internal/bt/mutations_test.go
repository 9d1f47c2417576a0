package bt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// cells is an entry that clears columns and sets one cell.
type cells struct {
	clear []string
	value string
}

func (c cells) AddTo(m Mutator) {
	for _, column := range c.clear {
		m.DeleteCellsInColumn("old", column)
	}
	m.Set("f", "q"+c.value, 1000, []byte(c.value))
}

func directEntries(n int) []Entry {
	entries := make([]Entry, n)
	for i := range entries {
		c := cells{value: fmt.Sprint(i % 3)}
		for j := range i % 4 {
			c.clear = append(c.clear, fmt.Sprint("c", j))
		}
		entries[i] = Entry{Key: fmt.Sprint("row-", i), Direct: c, Mutations: len(c.clear) + 1}
	}
	return entries
}

// TestDirectEntriesAreWhatTheClientSends checks that an entry encoded by the guard equals the client's encoding, also
// if the stated number of mutations is wrong.
func TestDirectEntriesAreWhatTheClientSends(t *testing.T) {
	entries := directEntries(200)
	entries[7].Mutations = 0
	got := requestEntries(entries)
	for i, e := range got {
		var set []*btpb.Mutation
		for _, column := range entries[i].Direct.(cells).clear {
			set = append(set, &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: &btpb.Mutation_DeleteFromColumn{FamilyName: "old", ColumnQualifier: []byte(column)}}})
		}
		value := entries[i].Direct.(cells).value
		set = append(set, &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{FamilyName: "f", ColumnQualifier: []byte("q" + value), TimestampMicros: 1000, Value: []byte(value)}}})
		if want := (&btpb.MutateRowsRequest_Entry{RowKey: []byte(entries[i].Key), Mutations: set}); !proto.Equal(e, want) {
			t.Errorf("entry %d: got %v, want %v", i, e, want)
		}
	}
	entries[3].Direct, entries[3].Mutation = nil, bigtable.NewMutation()
	if requestEntries(entries) != nil {
		t.Error("entries with a mutation of the client are encoded without it, want nil")
	}
}

// bulkAPI is a table that records the rows that the client gets and, if there is a guard, the requests that pass it.
type bulkAPI struct {
	bigtable.TableAPI
	guarded bool
	given   [][]string
	sent    [][]string
}

func (b *bulkAPI) ApplyBulk(ctx context.Context, keys []string, _ []*bigtable.Mutation, _ ...bigtable.ApplyOption) ([]error, error) {
	b.given = append(b.given, keys)
	if !b.guarded || len(keys) == 0 {
		return nil, nil
	}
	entries := make([]*btpb.MutateRowsRequest_Entry, len(keys))
	for i, key := range keys {
		entries[i] = &btpb.MutateRowsRequest_Entry{RowKey: []byte(key)}
	}
	stream, err := guardStream(ctx, nil, nil, "/MutateRows", func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
		return &taking{b: b}, nil
	})
	if err != nil {
		return nil, err
	}
	return nil, stream.SendMsg(&btpb.MutateRowsRequest{Entries: entries})
}

type taking struct {
	grpc.ClientStream
	b *bulkAPI
}

func (s *taking) SendMsg(m any) error {
	var rows []string
	for _, e := range m.(*btpb.MutateRowsRequest).Entries {
		rows = append(rows, string(e.RowKey))
	}
	s.b.sent = append(s.b.sent, rows)
	return nil
}

// TestStandInIsNeverSent checks that the client gets stand-in rows only after a bulk write has passed the guard, which
// then sends the real rows.
func TestStandInIsNeverSent(t *testing.T) {
	entries := directEntries(5)
	rows := make([]string, len(entries))
	for i := range entries {
		rows[i] = entries[i].Key
	}
	for _, guarded := range []bool{false, true} {
		api := &bulkAPI{guarded: guarded}
		table := New(api, api, api, Timeouts{Read: time.Minute, Write: time.Minute, Scan: time.Minute})
		for range 3 {
			table.Attempt(t.Context(), entries, nil)
		}
		for i, keys := range api.given {
			if own := !guarded || i == 0; own != slices.Equal(keys, rows) {
				t.Errorf("guarded %v, request %d: got client rows %q", guarded, i, keys)
			}
		}
		for i, sent := range api.sent {
			if !slices.Equal(sent, rows) {
				t.Errorf("request %d: got rows %q, want %q", i, sent, rows)
			}
		}
		if guarded && len(api.sent) != 3 {
			t.Errorf("got %d requests, want 3", len(api.sent))
		}
		if answers := table.Attempt(t.Context(), nil, nil); len(answers) > 0 || len(api.sent) > 3 {
			t.Errorf("no entries: got answers %v after %d requests", answers, len(api.sent))
		}
		if !guarded {
			continue
		}
		api.guarded = false
		for i, a := range table.Attempt(t.Context(), entries, nil) {
			if !errors.Is(a.Err, ErrUnguarded) {
				t.Errorf("entry %d, which was not sent: got %v, want ErrUnguarded", i, a.Err)
			}
		}
	}
}

// rowAPI is a table that records the row that the client gets and, if there is a guard, the request that passes it.
type rowAPI struct {
	bigtable.TableAPI
	guarded bool
	fails   int   // how many requests fail
	err     error // with this; nil for lost ones
	given   string
	sent    []*btpb.MutateRowRequest
}

func (r *rowAPI) Apply(ctx context.Context, key string, _ *bigtable.Mutation, _ ...bigtable.ApplyOption) error {
	r.given = key
	if !r.guarded {
		return nil
	}
	req := &btpb.MutateRowRequest{RowKey: []byte(key)}
	return guardUnary(ctx, "/MutateRow", req, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		r.sent = append(r.sent, req)
		if r.fails--; r.fails < 0 {
			return nil
		}
		if r.err != nil {
			return r.err
		}
		return status.Error(codes.Unavailable, "lost")
	})
}

// TestRowsPassTheGuardAsInBulk checks that a write of one row sends what a bulk write sends, once a call has passed the
// guard, and the client's own request before and without a guard.
func TestRowsPassTheGuardAsInBulk(t *testing.T) {
	api := &rowAPI{guarded: true}
	table := New(api, api, api, Timeouts{Write: time.Minute})
	for i, want := range requestEntries(directEntries(5)) {
		e := directEntries(5)[i]
		if i == 4 {
			e.Mutations, api.fails = 0, 1
		}
		before := len(api.sent)
		if out := table.ApplyEntry(t.Context(), e); out.State != Stored || out.Attempts != len(api.sent)-before {
			t.Fatalf("row %d: %+v", i, out)
		}
		if own := api.given == e.Key; own != (i == 0) {
			t.Errorf("row %d: the client got row %q", i, api.given)
		}
		for _, req := range api.sent[before:] {
			if got := (&btpb.MutateRowsRequest_Entry{RowKey: req.RowKey, Mutations: req.Mutations}); i > 0 && !proto.Equal(got, want) {
				t.Errorf("row %d: sent %v, want %v", i, got, want)
			}
		}
	}
	if len(api.sent) != 6 {
		t.Errorf("%d requests, want 5 and a repeated one", len(api.sent))
	}
	api.guarded = false
	if out := table.ApplyEntry(t.Context(), directEntries(2)[1]); out.State != Unknown || !errors.Is(out.Err, errStandIn) {
		t.Errorf("a row that was not sent: %+v, want an unknown outcome", out)
	}
	unguarded := New(api, api, api, Timeouts{Write: time.Minute})
	for range 2 {
		if out := unguarded.ApplyEntry(t.Context(), directEntries(2)[1]); out.State != Stored || api.given != "row-1" {
			t.Errorf("without a guard: %+v of row %q", out, api.given)
		}
	}
}

// TestRowsAreSentAgainWithinTheirTime: a write of one row that may succeed later is sent again, with pauses, until its
// time is over. A refused one is sent once, and one whose context has ended not at all.
func TestRowsAreSentAgainWithinTheirTime(t *testing.T) {
	denied := status.Error(codes.PermissionDenied, "denied")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx      context.Context
		err      error
		want     State
		min, max int // requests
	}{
		"lost":    {t.Context(), nil, Unknown, 2, 20},
		"refused": {t.Context(), denied, Rejected, 1, 1},
		"ended":   {ended, context.Canceled, Rejected, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			api := &rowAPI{guarded: true, fails: 1 << 30, err: c.err}
			out := New(api, api, api, Timeouts{Write: 200 * time.Millisecond}).ApplyEntry(c.ctx, directEntries(1)[0])
			if n := len(api.sent); out.State != c.want || out.Attempts != n || n < c.min || n > c.max || c.err != nil && !errors.Is(out.Err, c.err) {
				t.Errorf("%+v after %d requests, want state %v with error %v after %d to %d", out, n, c.want, c.err, c.min, c.max)
			}
		})
	}
}
