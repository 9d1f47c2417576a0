package bt

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/api/option"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tidemark-go/tidemark/internal/firstrow"
)

type (
	chunk    = btpb.ReadRowsResponse_CellChunk
	response = btpb.ReadRowsResponse
)

// play is what a service answers to the attempts of one read.
type play struct {
	attempts []attempt
	requests []*btpb.ReadRowsRequest // that came
	drained  int                     // streams that were read to their end
	wanted   bool                    // whether a read asked for first rows only
}

// attempt is the stream of one attempt: its responses, and whether it is then cut.
type attempt struct {
	responses []*response
	cut       bool
}

type playKey struct{}

// playing returns the same table on two clients, one with the guard. What the service answers is in the context of a
// read.
func playing(tb testing.TB) (guarded, plain bigtable.TableAPI) {
	table := func(opts ...grpc.DialOption) bigtable.TableAPI {
		opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithChainStreamInterceptor(
			func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				p := ctx.Value(playKey{}).(*play)
				p.wanted = firstrow.Wanted(ctx)
				return &playedStream{ctx: ctx, play: p}, nil
			}))
		conn, err := grpc.NewClient("passthrough:///played", opts...)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = conn.Close() })
		conf := bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}, DisableSession: true}
		client, err := bigtable.NewClientWithConfig(context.Background(), "p", "i", conf, option.WithGRPCConn(conn))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = client.Close() })
		return client.OpenTable("t")
	}
	return table(DialOptions()...), table()
}

// playedStream is the stream of one attempt.
type playedStream struct {
	ctx  context.Context
	play *play
	now  attempt
}

func (s *playedStream) Header() (metadata.MD, error) { return nil, nil }
func (s *playedStream) Trailer() metadata.MD         { return nil }
func (s *playedStream) CloseSend() error             { return nil }
func (s *playedStream) Context() context.Context     { return s.ctx }

func (s *playedStream) SendMsg(m any) error {
	n := len(s.play.requests)
	s.play.requests = append(s.play.requests, proto.CloneOf(m.(*btpb.ReadRowsRequest)))
	if n < len(s.play.attempts) {
		s.now = s.play.attempts[n]
	}
	return nil
}

func (s *playedStream) RecvMsg(m any) error {
	if len(s.now.responses) > 0 && s.ctx.Err() == nil {
		next := s.now.responses[0]
		s.now.responses = s.now.responses[1:]
		out := m.(*response)
		proto.Reset(out)
		out.Chunks, out.LastScannedRowKey = next.Chunks, next.LastScannedRowKey
		return nil
	}
	s.play.drained++
	if s.now.cut {
		m.(*response).Chunks = []*chunk{cell("zzz", "f:q", "of a message that did not come whole=")}
		return errCutStream
	}
	return io.EOF
}

// errCutStream asks the client to try again at once.
var errCutStream = func() error {
	st, err := status.New(codes.Unavailable, "cut").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(0)})
	if err != nil {
		panic(err)
	}
	return st.Err()
}()

// cell returns a chunk with a whole cell. The value says what kind of chunk it is: "=" commits the row, "+" goes on.
func cell(key, column, value string) *chunk {
	c := &chunk{TimestampMicros: 1000, Value: []byte(strings.TrimRight(value, "=+"))}
	if key != "" {
		c.RowKey = []byte(key)
	}
	if family, qualifier, ok := strings.Cut(column, ":"); ok {
		c.FamilyName, c.Qualifier = wrapperspb.String(family), wrapperspb.Bytes([]byte(qualifier))
	}
	if strings.HasSuffix(value, "=") {
		c.RowStatus = &btpb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}
	}
	if strings.HasSuffix(value, "+") {
		c.ValueSize = 100
	}
	return c
}

func reset() *chunk {
	return &chunk{RowStatus: &btpb.ReadRowsResponse_CellChunk_ResetRow{ResetRow: true}}
}

func chunks(c ...*chunk) *response { return &response{Chunks: c} }

func scannedTo(key string) *response { return &response{LastScannedRowKey: []byte(key)} }

// text returns a row as text, its families in order.
func text[C any](key string, families map[string][]C, cell func(C) string) string {
	var b strings.Builder
	b.WriteString(key)
	for _, family := range slices.Sorted(maps.Keys(families)) {
		fmt.Fprintf(&b, " %q", family)
		for _, c := range families[family] {
			b.WriteString(" " + cell(c))
		}
	}
	return b.String()
}

func rowText(row *Row) string {
	families := map[string][]string{}
	for family, cells := range row.Families() {
		if families[family] != nil {
			return "family twice: " + family
		}
		for _, c := range cells {
			families[family] = append(families[family], fmt.Sprintf("%s@%d=%q", c.Column, c.Timestamp, c.Value))
		}
	}
	return text(row.Key(), families, func(s string) string { return s })
}

func clientText(row bigtable.Row) string {
	return text(row.Key(), row, func(c bigtable.ReadItem) string { return fmt.Sprintf("%s@%d=%q", c.Column, c.Timestamp, c.Value) })
}

// readPlay reads what is played, until stop rows have come; 0 for all.
func readPlay(t *testing.T, data bigtable.TableAPI, p *play, s Scan, stop int) (rows []string, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if s.Rows == nil {
		s.Rows = bigtable.InfiniteRange("")
	}
	table := New(data, data, data, Timeouts{Read: time.Minute, Write: time.Minute, Scan: time.Minute})
	err = table.Read(context.WithValue(ctx, playKey{}, p), s, func(row *Row) bool {
		rows = append(rows, rowText(row))
		return len(rows) != stop
	})
	return rows, err
}

// TestRowsOfStreams: rows come as the service sent them, however the chunks are divided among responses and attempts; a
// broken stream is resumed behind the last whole row, with what is left of the limit.
func TestRowsOfStreams(t *testing.T) {
	guarded, plain := playing(t)
	for name, c := range map[string]struct {
		attempts []attempt
		scan     Scan
		stop     int
		want     string
		fails    string
		starts   string // of the requests' ranges, and their limits
		spans    bool   // a row spans responses, or the cut: the client refuses that
	}{
		"one row in three responses": {
			attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1")), {}, chunks(cell("", "", "2"), cell("", "g:q", "3")), chunks(cell("", "h:q", "4="))}}},
			want:     `a "f" f:q@1000="1" f:q@1000="2" "g" g:q@1000="3" "h" h:q@1000="4"`, spans: true,
		},
		"a cell within a value": {
			attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1+")), chunks(cell("", "", "2="))}}},
			fails:    "a cell within a value",
		},
		"a value in three responses": {
			attempts: []attempt{{responses: []*response{
				chunks(cell("a", "f:q", "1+")), chunks(&chunk{Value: []byte("2"), ValueSize: 3}), chunks(&chunk{Value: []byte("3"), RowStatus: cell("", "", "=").RowStatus}),
			}}},
			want: `a "f" f:q@1000="123"`, spans: true,
		},
		"cells without family and column": {
			attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1"), cell("", "", "2"), &chunk{Qualifier: wrapperspb.Bytes([]byte("r")), Value: []byte("3")}, cell("a", "g:r", "4="))}}},
			want:     `a "f" f:q@1000="1" f:q@1000="2" f:r@0="3" "g" g:r@1000="4"`,
		},
		"a family twice in a row": {
			attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1"), cell("", "g:q", "2"), cell("", "f:r", "3"), cell("", "h:q", "4"), cell("", "g:q", "5="))}}},
			want:     `a "f" f:q@1000="1" f:r@1000="3" "g" g:q@1000="2" g:q@1000="5" "h" h:q@1000="4"`,
		},
		"a row that is reset": {
			attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1")), chunks(reset(), cell("a", "f:q", "2="))}}},
			want:     `a "f" f:q@1000="2"`, spans: true,
		},
		"cut within a row": {
			attempts: []attempt{
				{responses: []*response{chunks(cell("a", "f:q", "1="), cell("b", "f:q", "2")), chunks(cell("", "f:r", "3+"))}, cut: true},
				{responses: []*response{chunks(cell("b", "f:q", "4="))}},
			},
			want: `a "f" f:q@1000="1";b "f" f:q@1000="4"`, starts: "/0 a/0", spans: true,
		},
		"cut before the first row": {
			attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1"))}, cut: true}, {responses: []*response{chunks(cell("a", "f:q", "2="))}}},
			want:     `a "f" f:q@1000="2"`, starts: "/0 /0", spans: true,
		},
		"cut behind rows without cells": {
			attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1=")), scannedTo("m"), {}}, cut: true}, {}},
			want:     `a "f" f:q@1000="1"`, starts: "/0 m/0",
		},
		"cut within a row, behind a key that was looked at": {
			attempts: []attempt{
				{responses: []*response{chunks(cell("a", "f:q", "1="), cell("b", "f:q", "2")), scannedTo("b")}, cut: true},
				{responses: []*response{chunks(cell("b", "f:q", "4="))}},
			},
			want: `a "f" f:q@1000="1";b "f" f:q@1000="4"`, starts: "/0 a/0", spans: true,
		},
		"the rest of a limit": {
			attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1="), cell("b", "f:q", "1="))}, cut: true}, {responses: []*response{chunks(cell("c", "f:q", "1="))}}},
			scan:     Scan{Limit: 3},
			want:     `a "f" f:q@1000="1";b "f" f:q@1000="1";c "f" f:q@1000="1"`, starts: "/3 b/1",
		},
		"nothing left of a limit": {
			attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1="), cell("b", "f:q", "1="))}, cut: true}},
			scan:     Scan{Limit: 2},
			want:     `a "f" f:q@1000="1";b "f" f:q@1000="1"`, starts: "/2",
		},
		"nothing left of a list": {
			attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1="), cell("b", "f:q", "1="))}, cut: true}},
			scan:     Scan{Rows: bigtable.RowList{"a", "b"}},
			want:     `a "f" f:q@1000="1";b "f" f:q@1000="1"`, starts: "/0",
		},
		"descending": {
			attempts: []attempt{{responses: []*response{chunks(cell("c", "f:q", "1="), cell("b", "f:q", "1="))}, cut: true}, {responses: []*response{chunks(cell("a", "f:q", "1="))}}},
			scan:     Scan{Reverse: true},
			want:     `c "f" f:q@1000="1";b "f" f:q@1000="1";a "f" f:q@1000="1"`, starts: "/0 -b/0",
		},
		"the visitor has enough": {
			attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1="), cell("b", "f:q", "1=")), chunks(cell("c", "f:q", "1="))}, cut: true}},
			stop:     1, want: `a "f" f:q@1000="1"`, starts: "/0",
		},
		"the end within a row": {
			attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1="), cell("b", "f:q", "1"))}}},
			want:     `a "f" f:q@1000="1"`, fails: "within a row",
		},
		"a key twice": {
			attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1=")), chunks(cell("a", "f:q", "1="))}}},
			want:     `a "f" f:q@1000="1"`, fails: "out of order",
		},
		"a row again after a cut": {
			attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1="), cell("b", "f:q", "1="))}, cut: true}, {responses: []*response{chunks(cell("b", "f:q", "1="))}}},
			want:     `a "f" f:q@1000="1";b "f" f:q@1000="1";b "f" f:q@1000="1"`, // for the visitor to refuse
		},
		"ascending where descending was asked for": {
			attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1="), cell("b", "f:q", "1="))}}},
			scan:     Scan{Reverse: true}, want: `a "f" f:q@1000="1"`, fails: "out of order",
		},
		"a reset between rows":    {attempts: []attempt{{responses: []*response{chunks(reset())}}}, fails: "between rows"},
		"a reset with a value":    {attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1"), &chunk{Value: []byte("x"), RowStatus: reset().RowStatus})}}}, fails: "other fields"},
		"a row without a key":     {attempts: []attempt{{responses: []*response{chunks(cell("", "f:q", "1="))}}}, fails: "without key"},
		"a row without a column":  {attempts: []attempt{{responses: []*response{chunks(cell("a", "", "1="))}}}, fails: "without key"},
		"a row within another":    {attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1"), cell("b", "f:q", "1="))}}}, fails: "within another"},
		"a family alone":          {attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1"), &chunk{FamilyName: wrapperspb.String("g")})}}}, fails: "without a column"},
		"a commit within a value": {attempts: []attempt{{responses: []*response{chunks(cell("a", "f:q", "1"), &chunk{ValueSize: 5, RowStatus: cell("", "", "=").RowStatus})}}}, fails: "within a value"},
		"an empty stream":         {},
	} {
		t.Run(name, func(t *testing.T) {
			p := &play{attempts: c.attempts}
			rows, err := readPlay(t, guarded, p, c.scan, c.stop)
			if got := strings.Join(rows, ";"); got != c.want {
				t.Errorf("rows %s\nwant %s", got, c.want)
			}
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want one with %q", err, c.fails)
			}
			if c.starts != "" && asked(p) != c.starts {
				t.Errorf("asked for %q, want %q", asked(p), c.starts)
			}
			if c.stop > 0 && p.drained != 1 {
				t.Errorf("%d streams were read to their end, want 1", p.drained)
			}
			if c.fails == "" && !c.spans {
				again, err := readPlay(t, plain, &play{attempts: c.attempts}, c.scan, c.stop)
				if err != nil || !slices.Equal(again, rows) {
					t.Errorf("without the guard: %q, %v", again, err)
				}
			}
		})
	}
}

// asked returns where the requests of a play began, and their limits.
func asked(p *play) string {
	var out []string
	for _, req := range p.requests {
		from := ""
		if ranges := req.GetRows().GetRowRanges(); len(ranges) == 1 {
			from = string(ranges[0].GetStartKeyOpen())
			if end := ranges[0].GetEndKeyOpen(); end != nil {
				from += "-" + string(end)
			}
		}
		out = append(out, fmt.Sprintf("%s/%d", from, req.RowsLimit))
	}
	return strings.Join(out, " ")
}

// TestKeptPartsOfRowsStay: a caller may keep keys, columns and values, a copy of a row, and what Table.Row returns,
// after the reader's memory was used again by other reads.
func TestKeptPartsOfRowsStay(t *testing.T) {
	guarded, _ := playing(t)
	table := New(guarded, guarded, guarded, Timeouts{Read: time.Minute, Write: time.Minute, Scan: time.Minute})
	var kept []string
	var values [][]byte
	var copies, single []*Row
	for round := range 20 {
		one := &play{attempts: []attempt{{responses: []*response{chunks(cell("row", "f:c", fmt.Sprintf("%d=", round)))}}}}
		row, err := table.Row(context.WithValue(t.Context(), playKey{}, one), "row", nil)
		if err != nil {
			t.Fatal(err)
		}
		single = append(single, row)
		var sent []*chunk
		for i := range 50 {
			sent = append(sent, cell(fmt.Sprintf("row-%02d-%02d", round, i), fmt.Sprintf("f:%d", i%7), fmt.Sprintf("v-%d-%d=", round, i)))
		}
		p := &play{attempts: []attempt{{responses: []*response{chunks(sent...)}}}}
		err = table.Read(context.WithValue(t.Context(), playKey{}, p), Scan{Rows: bigtable.InfiniteRange("")}, func(row *Row) bool {
			kept = append(kept, row.Key()+row.Cells()[0].Column)
			values, copies = append(values, row.Cells()[0].Value), append(copies, row.Clone())
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for round, row := range single {
		if want := fmt.Sprintf("row \"f\" f:c@1000=%q", fmt.Sprint(round)); rowText(row) != want {
			t.Fatalf("Row of round %d: %s, want %s", round, rowText(row), want)
		}
	}
	for n := range kept {
		round, i := n/50, n%50
		key, column, value := fmt.Sprintf("row-%02d-%02d", round, i), fmt.Sprintf("f:%d", i%7), fmt.Sprintf("v-%d-%d", round, i)
		if kept[n] != key+column || string(values[n]) != value || rowText(copies[n]) != fmt.Sprintf("%s \"f\" %s@1000=%q", key, column, value) {
			t.Fatalf("kept of row %d: %q, %q, %s", n, kept[n], values[n], rowText(copies[n]))
		}
	}
}
