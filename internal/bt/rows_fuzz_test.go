package bt

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

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

// compile turns bytes into a play for the guard, the same play with each attempt in one response, and how it is read.
// The first byte has the limit, the order and when the visitor stops. Letters then make valid cells, and other bytes
// the rest:
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
