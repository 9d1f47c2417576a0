// Package fieldlist keeps the names and kinds of the fields of a tenant's dataset whose payloads have no fixed shape, in
// one row, with the first and the last day on which each field was seen.
//
// Writers write the row without reading it: a cell says what one process has seen, and the cells of several processes
// join to the whole. See docs/format.md.
package fieldlist

import (
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
)

// The columns of the row. The name of a field and its kind follow, joined by a colon: "l:motor.temp:float". Each kind has
// its own cells: a writer that sees one kind does not know of the others.
const (
	lastSlot, afterLast   = "l:", "l;" // timestamp: the end of the last day
	firstSlot, afterFirst = "a:", "a;" // timestamp: the days from the first one to farDay, so that the earliest is the newest
	omittedColumn         = "o"        // timestamp: the end of a day; value: how many names were left out, in decimal
)

// MaxFields is how many fields of a tenant's dataset are listed, and MaxName the longest name in bytes.
const (
	MaxFields = 1000
	MaxName   = codec.MaxFieldName
)

const (
	dayMicros = int64(24 * time.Hour / time.Microsecond)
	farDay    = 2_932_897 // 10000-01-01, the first day after the times that writers accept
)

// dayOf returns the UTC day of a point's cell, counted from 1970. It returns false for a day that is not listed.
func dayOf(cell bigtable.Timestamp) (day int32, ok bool) {
	d := int64(cell) / dayMicros
	return int32(d), cell >= 0 && d < farDay
}

// Day returns the start of a day.
func Day(day int32) time.Time { return time.Unix(int64(day)*24*60*60, 0).UTC() }

// lastCell is the timestamp of a field's last day: its end, so that the cell expires no earlier than the day's points.
func lastCell(day int32) bigtable.Timestamp {
	return bigtable.Timestamp((int64(day)+1)*dayMicros - 1000)
}

// firstCell is the timestamp of a field's first day.
func firstCell(day int32) bigtable.Timestamp {
	return bigtable.Timestamp((farDay - int64(day)) * dayMicros)
}

func dayOfLast(cell bigtable.Timestamp) int32  { return int32(int64(cell) / dayMicros) }
func dayOfFirst(cell bigtable.Timestamp) int32 { return int32(farDay - int64(cell)/dayMicros) }

// kinds are the names of kinds in columns.
var kinds = func() map[string]codec.Kind {
	out := map[string]codec.Kind{}
	for k := codec.KindFloat; k <= codec.KindList; k++ {
		out[k.String()] = k
	}
	return out
}()

func qualifier(slot, name string, k codec.Kind) string { return slot + name + ":" + k.String() }

// splitQualifier is the inverse of qualifier. It returns false for a column of another form.
func splitQualifier(column, slot string) (name string, k codec.Kind, ok bool) {
	rest, ok := strings.CutPrefix(column, slot)
	cut := strings.LastIndexByte(rest, ':')
	if !ok || cut < 0 {
		return "", 0, false
	}
	k, ok = kinds[rest[cut+1:]]
	return rest[:cut], k, ok
}

// setLast adds the mutations that say that a field was seen on a day, and later than before. Older cells go, so that one
// version stays.
func setLast(m *bigtable.Mutation, family, name string, k codec.Kind, day int32) {
	column := qualifier(lastSlot, name, k)
	m.DeleteTimestampRange(family, column, 0, lastCell(day))
	m.Set(family, column, lastCell(day), nil)
}

// setOmitted adds the mutations that say how many names were left out up to a day.
func setOmitted(m *bigtable.Mutation, family string, day int32, n int) {
	m.DeleteTimestampRange(family, omittedColumn, 0, lastCell(day))
	m.Set(family, omittedColumn, lastCell(day), strconv.AppendInt(nil, int64(n), 10))
}

// setFirst adds the mutations that say that a field was seen on a day, and earlier than before.
func setFirst(m *bigtable.Mutation, family, name string, k codec.Kind, day int32) {
	column := qualifier(firstSlot, name, k)
	m.DeleteTimestampRange(family, column, 0, firstCell(day))
	m.Set(family, column, firstCell(day), nil)
}
