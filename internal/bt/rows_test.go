package bt

import (
	"bytes"
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
}

// attempt is the stream of one attempt: its responses, and whether it is then cut.
type attempt struct {
	responses []*response
	cut       bool
}

type playKey struct{}

// playing returns the same table on two clients, one with the guard. What the service answers is in the context of a read.
func playing(tb testing.TB) (guarded, plain bigtable.TableAPI) {
	table := func(opts ...grpc.DialOption) bigtable.TableAPI {
		opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithChainStreamInterceptor(
			func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				return &playedStream{ctx: ctx, play: ctx.Value(playKey{}).(*play)}, nil
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
	table := New(data, data, Timeouts{Read: time.Minute, Write: time.Minute, Scan: time.Minute})
	err = table.Read(context.WithValue(ctx, playKey{}, p), s, func(row *Row) bool {
		rows = append(rows, rowText(row))
		return len(rows) != stop
	})
	return rows, err
}

// TestRowsOfStreams: rows come as the service sent them, however the chunks are divided among responses and attempts; a broken
// stream is resumed behind the last whole row, with what is left of the limit.
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

// TestKeptPartsOfRowsStay: a caller may keep keys, columns and values, and a copy of a row, after the reader's memory was used
// again by other reads.
func TestKeptPartsOfRowsStay(t *testing.T) {
	guarded, _ := playing(t)
	table := New(guarded, guarded, Timeouts{Read: time.Minute, Write: time.Minute, Scan: time.Minute})
	var kept []string
	var values [][]byte
	var copies []*Row
	for round := range 20 {
		var sent []*chunk
		for i := range 50 {
			sent = append(sent, cell(fmt.Sprintf("row-%02d-%02d", round, i), fmt.Sprintf("f:%d", i%7), fmt.Sprintf("v-%d-%d=", round, i)))
		}
		p := &play{attempts: []attempt{{responses: []*response{chunks(sent...)}}}}
		err := table.Read(context.WithValue(t.Context(), playKey{}, p), Scan{Rows: bigtable.InfiniteRange("")}, func(row *Row) bool {
			kept = append(kept, row.Key()+row.Cells()[0].Column)
			values, copies = append(values, row.Cells()[0].Value), append(copies, row.Clone())
			return true
		})
		if err != nil {
			t.Fatal(err)
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

// FuzzRows compares the guard's rows with those that the official client makes of the same stream without the guard.
func FuzzRows(f *testing.F) {
	guarded, plain := playing(f)
	for _, seed := range []string{
		"", "\x00aAbB", "\x00aabBcC", "\x00aAi.bB|cC", "\x08aAbBj.cC", "\x10aAbBj.cC", "\x01aAbBjcC", "\x00afgGbB", "\x00ahaA", "\x00aA.bj.bB",
		"\x02aAbBcC", "\x00aAkbBj.cC", "\x00aAl\x01\x02\x03bB", "\x00abl\x10\x42\x00", "\x00l\x3f\xff\x01", "\x00aAj.aA", "\x00fl\x80\x01\x01gG", "\x00abj.abB",
		"\x00al\x06\x00\x00bB", "\x00al\x09\x00\x00B", "\x00l\x2b\x08\x00A", "\x0aaAbBj.cCdD", "\x00aAl\x23\x00\x00bB",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, program []byte) { compareRows(t, guarded, plain, program) })
}

// compareRows compares what the guard and what the client make of a program.
func compareRows(t *testing.T, guarded, plain bigtable.TableAPI, program []byte) {
	split, whole, s, stop := compile(program)
	ours := &play{attempts: split}
	got, err := readPlay(t, guarded, ours, s, stop)

	reference := func() (*play, []string, error) {
		p := &play{attempts: whole}
		var rows []string
		opts := []bigtable.ReadOption{bigtable.LimitRows(s.Limit)}
		if s.Limit == 0 {
			opts = nil
		}
		if s.Reverse {
			opts = append(opts, bigtable.ReverseScan())
		}
		err := plain.ReadRows(context.WithValue(t.Context(), playKey{}, p), bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
			rows = append(rows, clientText(row))
			return len(rows) != stop
		}, opts...)
		return p, rows, err
	}
	theirs, want, wantErr := reference()
	for wantErr != nil && strings.Contains(wantErr.Error(), "invalid state for end of stream") {
		// The client refuses a row that goes on in another response. If the stream was cut in it, it must be dropped.
		a := &whole[len(theirs.requests)-1]
		if !a.cut {
			break
		}
		last := a.responses[0]
		n := len(last.Chunks)
		for n > 0 && (!last.Chunks[n-1].GetCommitRow() || last.Chunks[n-1].ValueSize > 0) {
			n--
		}
		last.Chunks = last.Chunks[:n]
		theirs, want, wantErr = reference()
	}
	if !slices.Equal(got, want) || (err == nil) != (wantErr == nil) {
		t.Fatalf("rows %q, %v\nwant %q, %v", got, err, want, wantErr)
	}
	if err == nil && asked(ours) != asked(theirs) {
		t.Fatalf("asked for %q, the client for %q", asked(ours), asked(theirs))
	}
}

// compile turns bytes into a play for the guard, the same play with each attempt in one response, and how it is read. The first
// byte has the limit, the order and when the visitor stops. Letters then make valid cells, and other bytes the rest:
//
//	a-e  a cell of a column, which begins a row if none is open; A-E the same, and the row ends
//	f g  a part of a value, and its last part; G the same, and the row ends
//	h    the row is reset
//	i .  the response ends
//	j    the stream is cut
//	k    the service has looked at rows without returning them
//	l    three bytes for any chunk
func compile(program []byte) (split, whole []attempt, s Scan, stop int) {
	head := byte(0)
	if len(program) > 0 {
		head, program = program[0], program[1:]
	}
	s.Limit, s.Reverse, stop = int64(head&7), head&8 != 0, int(head>>4&7)
	key, open, parts := 500, false, false
	name := func() string { return fmt.Sprintf("k%03d", key) }
	next := func() {
		if key++; s.Reverse {
			key -= 2
		}
	}
	var now, all attempt
	one := &response{}
	current := &response{}
	endResponse := func() {
		now.responses = append(now.responses, current)
		current = &response{}
	}
	endAttempt := func(cut bool) {
		endResponse()
		all.responses = []*response{one}
		now.cut, all.cut = cut, cut
		split, whole = append(split, now), append(whole, all)
		now, all, one = attempt{}, attempt{}, &response{}
		open, parts = false, false
	}
	add := func(c *chunk) {
		current.Chunks, one.Chunks = append(current.Chunks, c), append(one.Chunks, proto.CloneOf(c))
		parts = c.ValueSize > 0
		open = !c.GetResetRow() && (!c.GetCommitRow() || parts)
		if !open && !c.GetResetRow() {
			one.LastScannedRowKey = nil
		}
	}
	commit := &btpb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}
	for i := 0; i < len(program) && len(split) < 5; i++ {
		op := program[i]
		lower := op | 0x20
		c := &chunk{TimestampMicros: int64(i) * 1000, Value: bytes.Repeat([]byte{op}, int(op)%3)}
		if op != lower && lower <= 'g' && lower >= 'a' {
			c.RowStatus = commit
		}
		if !open {
			c.RowKey, c.FamilyName, c.Qualifier = []byte(name()), wrapperspb.String("f"), wrapperspb.Bytes([]byte("q"))
		}
		switch {
		case lower >= 'a' && lower <= 'e':
			if !open {
				next()
				c.RowKey = []byte(name())
			}
			if n := lower - 'a'; n > 0 {
				c.FamilyName, c.Qualifier = wrapperspb.String(string("fgh"[n/2])), wrapperspb.Bytes([]byte{'p' + n})
			}
			if parts {
				c.RowKey, c.FamilyName, c.Qualifier, c.TimestampMicros = nil, nil, nil, 0
			}
			add(c)
		case lower == 'f' || lower == 'g':
			if !open {
				next()
				c.RowKey = []byte(name())
			}
			if parts {
				c.TimestampMicros = 0
			}
			if lower == 'f' {
				c.ValueSize, c.RowStatus = 10, nil
			}
			add(c)
		case lower == 'h':
			add(reset())
		case lower == 'i' || op == '.':
			endResponse()
		case lower == 'j':
			endAttempt(true)
		case lower == 'k':
			if open {
				continue
			}
			next()
			current.LastScannedRowKey, one.LastScannedRowKey = []byte(name()), []byte(name())
			endResponse()
		case lower == 'l' && i+3 < len(program):
			add(anyChunk(program[i+1], program[i+2], program[i+3]))
			i += 3
		}
	}
	endAttempt(false)
	return split, whole, s, stop
}

// anyChunk returns a chunk that need not make sense.
func anyChunk(has, what, more byte) *chunk {
	c := &chunk{}
	if has&1 != 0 {
		c.RowKey = fmt.Appendf(nil, "k%03d", 490+int(what)%20)
	}
	if has&2 != 0 {
		c.FamilyName = wrapperspb.String([]string{"", "f", "g", "f:"}[what>>2&3])
	}
	if has&4 != 0 {
		c.Qualifier = wrapperspb.Bytes([]byte([]string{"", "q", "q:", "r"}[what>>4&3]))
	}
	if has&8 != 0 {
		c.TimestampMicros = int64(more)
	}
	if has&16 != 0 {
		c.Value = []byte{what}
	}
	if has&32 != 0 {
		c.ValueSize = int32(int8(more))
	}
	switch has >> 6 {
	case 1:
		c.RowStatus = &btpb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: more&1 == 0}
	case 2:
		c.RowStatus = &btpb.ReadRowsResponse_CellChunk_ResetRow{ResetRow: more&1 == 0}
	}
	if more&64 != 0 {
		c.Labels = []string{"label"}
	}
	return c
}
