package engine

import (
	"bytes"
	"cmp"
	"testing"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

func cellKey(table uint32, row []byte, family uint32, qualifier []byte, ts int64) []byte {
	k := appendRow(nil, table, row)
	k = appendColumn(k, family, qualifier)
	return appendTimestamp(k, ts)
}

func FuzzCellKeyRoundTrip(f *testing.F) {
	f.Add(uint32(1), []byte("acme#readings"), uint32(3), []byte("q"), int64(1000))
	f.Add(uint32(0xFFFFFFFF), []byte{0, 0xFF, 0, 1}, uint32(0), []byte{0}, int64(0))
	f.Add(uint32(0), []byte{0}, uint32(0xFFFFFFFF), []byte{}, int64(1<<62))
	f.Fuzz(func(t *testing.T, table uint32, row []byte, family uint32, qualifier []byte, ts int64) {
		if ts < 0 {
			ts = -(ts + 1)
		}
		key := cellKey(table, row, family, qualifier, ts)
		prefix, err := rowPrefix(key)
		if err != nil {
			t.Fatalf("rowPrefix(%x): %v", key, err)
		}
		if want := appendRow(nil, table, row); !bytes.Equal(prefix, want) {
			t.Fatalf("got row prefix %x, want %x", prefix, want)
		}
		if got := appendRowKey(nil, prefix); !bytes.Equal(got, row) {
			t.Fatalf("got row key %x, want %x", got, row)
		}
		col, err := splitColumn(key[len(prefix):])
		if err != nil {
			t.Fatalf("splitColumn: %v", err)
		}
		if got := appendUnescaped(nil, col.qualifier); col.family != family || !bytes.Equal(got, qualifier) || col.timestamp != ts {
			t.Fatalf("got column %d/%x/%d, want %d/%x/%d", col.family, got, col.timestamp, family, qualifier, ts)
		}
		if got, want := escapedLen(row), len(appendEscaped(nil, row)); got != want {
			t.Fatalf("escapedLen(%x) = %d, want %d", row, got, want)
		}
	})
}

func FuzzCellKeyOrder(f *testing.F) {
	f.Add([]byte("a"), []byte("q"), int64(1), []byte("a\x00"), []byte("q"), int64(1))
	f.Add([]byte("a\x00\xff"), []byte(""), int64(1), []byte("a\x00"), []byte("\x00"), int64(2))
	f.Add([]byte("a"), []byte("q"), int64(1), []byte("a"), []byte("q"), int64(2))
	f.Fuzz(func(t *testing.T, row1, q1 []byte, ts1 int64, row2, q2 []byte, ts2 int64) {
		ts1, ts2 = max(ts1, 0), max(ts2, 0)
		want := cmp.Or(bytes.Compare(row1, row2), bytes.Compare(q1, q2), cmp.Compare(ts2, ts1))
		got := bytes.Compare(cellKey(7, row1, 2, q1, ts1), cellKey(7, row2, 2, q2, ts2))
		if got != want {
			t.Fatalf("keys of (%x %x %d) and (%x %x %d) compare: got %d, want %d", row1, q1, ts1, row2, q2, ts2, got, want)
		}
		after := afterTerminator(appendRow(nil, 7, row1))
		inRow := bytes.Equal(row1, row2)
		key := cellKey(7, row2, 2, q2, ts2)
		if got := bytes.Compare(key, appendRow(nil, 7, row1)) >= 0 && bytes.Compare(key, after) < 0; got != inRow {
			t.Fatalf("cell of row %x counts as part of row %x: %v", row2, row1, got)
		}
	})
}

func FuzzCellKeyHostile(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{spaceCell, 0, 0, 0, 1, 0})
	f.Add(cellKey(1, []byte("r"), 1, []byte("q"), 5))
	f.Fuzz(func(t *testing.T, key []byte) {
		prefix, err := rowPrefix(key)
		if err != nil {
			return
		}
		row := appendRowKey(nil, prefix)
		col, err := splitColumn(key[len(prefix):])
		if err != nil {
			return
		}
		q := appendUnescaped(nil, col.qualifier)
		table := uint32(key[1])<<24 | uint32(key[2])<<16 | uint32(key[3])<<8 | uint32(key[4])
		if again := cellKey(table, row, col.family, q, col.timestamp); !bytes.Equal(again, key) {
			t.Fatalf("%x was accepted, but its parts encode to %x", key, again)
		}
	})
}

func TestSuccessor(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"a", "b"}, {"a\xff", "b"}, {"a\xff\xff", "b"}, {"ab", "ac"}, {"\xff", ""}, {"", ""},
	} {
		if got := string(rowfilter.PrefixEnd([]byte(tt.in))); got != tt.want {
			t.Errorf("PrefixEnd(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
