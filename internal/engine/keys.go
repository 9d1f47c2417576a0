package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
)

// A cell is one Pebble key. The first byte of each key selects a key space:
//
//	0x00  the engine's own records (see records.go)
//	0x01  cells, in the layout below
//	0x02  idempotency tokens of additions (see tokens.go)
//
// A cell's key is
//
//	0x01 | table (4) | row key, escaped | 00 01 | family (4) | qualifier, escaped | 00 01 | 2^64-1-timestamp (8)
//
// and its value is the cell's value, unchanged. Integers are big-endian. Numbers of tables and families are never used
// twice, so remains of a dropped one never become part of a new one of the same name. Escaping turns the byte 00 into
// 00 FF and leaves all others unchanged. With the terminator 00 01, keys are ordered by (table, row key, family,
// qualifier, newest timestamp first), no key of a row is a prefix of another row's, and each row, each family of a row
// and each column of a row is one range. 00 02 in a terminator's place is the first key after such a range.
const (
	spaceMeta = 0x00
	spaceCell = 0x01

	escByte  = 0x00
	escZero  = 0xFF
	escEnd   = 0x01
	escAfter = 0x02

	tablePrefixLen = 1 + 4
	rowOverhead    = tablePrefixLen + 2 // bytes of a row's prefix besides the row key
	familyLen      = 4
	timestampLen   = 8
)

// storageVersion is the version of the layout of keys and records. An engine refuses a folder with a higher version.
const storageVersion = 1

var errBadKey = errors.New("engine: malformed cell key")

// appendTable appends the prefix of all cells of a table.
func appendTable(dst []byte, table uint32) []byte {
	dst = append(dst, spaceCell)
	return binary.BigEndian.AppendUint32(dst, table)
}

// tableRange returns the range of all cells of a table. Its number is less than maxTables.
func tableRange(table uint32) (lower, upper []byte) {
	return appendTable(nil, table), appendTable(nil, table+1)
}

// appendEscaped appends b escaped, without a terminator.
func appendEscaped(dst, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, escByte)
		if i < 0 {
			return append(dst, b...)
		}
		dst = append(dst, b[:i]...)
		dst = append(dst, escByte, escZero)
		b = b[i+1:]
	}
}

// escapedLen is how many bytes appendEscaped appends.
func escapedLen(b []byte) int { return len(b) + bytes.Count(b, []byte{escByte}) }

// escapedEnd returns the index of the terminator of the escaped string at the start of b.
func escapedEnd(b []byte) (end int, ok bool) {
	at := 0
	for {
		i := bytes.IndexByte(b[at:], escByte)
		if i < 0 || at+i+1 >= len(b) {
			return 0, false
		}
		switch b[at+i+1] {
		case escEnd:
			return at + i, true
		case escZero:
			at += i + 2
		default:
			return 0, false
		}
	}
}

// appendUnescaped appends the original bytes of the escaped string b, given without its terminator.
func appendUnescaped(dst, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, escByte)
		if i < 0 {
			return append(dst, b...)
		}
		dst = append(dst, b[:i+1]...)
		b = b[i+2:]
	}
}

// appendRow appends the prefix of all cells of a row, with its terminator.
func appendRow(dst []byte, table uint32, rowKey []byte) []byte {
	dst = appendTable(dst, table)
	dst = appendEscaped(dst, rowKey)
	return append(dst, escByte, escEnd)
}

// appendFamily appends the number of a family to a row's prefix.
func appendFamily(dst []byte, family uint32) []byte {
	return binary.BigEndian.AppendUint32(dst, family)
}

// appendColumn appends a family and a qualifier with its terminator to a row's prefix.
func appendColumn(dst []byte, family uint32, qualifier []byte) []byte {
	dst = appendFamily(dst, family)
	dst = appendEscaped(dst, qualifier)
	return append(dst, escByte, escEnd)
}

// appendTimestamp appends a timestamp so that the newest sorts first.
func appendTimestamp(dst []byte, micros int64) []byte {
	return binary.BigEndian.AppendUint64(dst, math.MaxUint64-uint64(micros))
}

// afterTerminator returns the first key after the range of a row's or column's prefix, which ends with a terminator. It
// changes the prefix in place.
func afterTerminator(prefix []byte) []byte {
	prefix[len(prefix)-1] = escAfter
	return prefix
}

// rowPrefix returns the part of a cell's key that all cells of its row share.
func rowPrefix(key []byte) ([]byte, error) {
	if len(key) < tablePrefixLen || key[0] != spaceCell {
		return nil, errBadKey
	}
	end, ok := escapedEnd(key[tablePrefixLen:])
	if !ok {
		return nil, errBadKey
	}
	return key[:tablePrefixLen+end+2], nil
}

// appendRowKey appends the row key of a row's prefix.
func appendRowKey(dst, rowPrefix []byte) []byte {
	return appendUnescaped(dst, rowPrefix[tablePrefixLen:len(rowPrefix)-2])
}

// column is the part of a cell's key after its row's prefix.
type column struct {
	family    uint32
	qualifier []byte // escaped, without terminator; part of the key
	timestamp int64
}

// splitColumn parses what follows a row's prefix in a cell's key.
func splitColumn(rest []byte) (column, error) {
	if len(rest) < familyLen+2+timestampLen {
		return column{}, errBadKey
	}
	tail := rest[familyLen:]
	end, ok := escapedEnd(tail)
	if !ok || len(tail) != end+2+timestampLen {
		return column{}, errBadKey
	}
	inverted := binary.BigEndian.Uint64(tail[end+2:])
	if inverted <= math.MaxInt64 {
		return column{}, errBadKey // a negative timestamp is never stored
	}
	return column{
		family:    binary.BigEndian.Uint32(rest),
		qualifier: tail[:end],
		timestamp: int64(math.MaxUint64 - inverted),
	}, nil
}
