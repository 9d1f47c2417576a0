// Package fieldlist keeps the names and kinds of the fields of a tenant's dataset whose catalogue entry has none, in
// one row, with the first and the last day on which each field was seen.
//
// Writers write the row without reading it: a cell says what one process has seen, and the cells of several processes
// join to the whole. See docs/format.md.
package fieldlist

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/fields"
)

// The columns of the row. A column of a field has the first day on which a process saw it, its kind and its name; the
// cell's timestamp is the end of the last day. Later first days sort before earlier ones.
const (
	fieldPrefix   = "l:"
	omittedColumn = "o" // how many names were left out, in decimal
	endOfColumns  = "p"
)

// MaxFields is how many fields of a tenant's dataset are listed.
const MaxFields = 1000

const (
	dayMicros = int64(24 * time.Hour / time.Microsecond)
	farDay    = 2_932_897 // 10000-01-01, the first day after the times that writers accept
)

// dayOf returns the UTC day of a point's cell, counted from 1970. It returns false for a day that is not listed.
func dayOf(cell bigtable.Timestamp) (day int32, ok bool) {
	d := int64(cell) / dayMicros
	return int32(d), cell >= 0 && d < farDay
}

// timeOf returns the start of a day.
func timeOf(day int32) time.Time { return time.Unix(int64(day)*24*60*60, 0).UTC() }

// endOf returns the timestamp of a cell whose last day is day, so that it expires no earlier than the day's points.
func endOf(day int32) bigtable.Timestamp {
	return bigtable.Timestamp((int64(day)+1)*dayMicros - 1000)
}

// days are the first and the last day on which a field was seen.
type days struct{ first, last int32 }

func column(first int32, k codec.Kind, name string) string {
	return fmt.Sprintf("%s%07d:%s:%s", fieldPrefix, farDay-first, k, name)
}

// parseColumn is the inverse of column. It returns false for a column of another form.
func parseColumn(column string) (first int32, k codec.Kind, name string, ok bool) {
	parts := strings.SplitN(column, ":", 4)
	if len(parts) != 4 || !strings.HasPrefix(column, fieldPrefix) {
		return 0, 0, "", false
	}
	n, err := strconv.ParseUint(parts[1], 10, 31)
	k = fields.KindNamed(parts[2])
	return farDay - int32(n), k, parts[3], k != codec.KindInvalid && err == nil && n > 0 && n <= farDay
}

// set adds the mutations that set a cell and delete the column's older ones, and returns their number.
func set(m *bigtable.Mutation, family, column string, lastDay int32, value []byte) int {
	m.DeleteTimestampRange(family, column, 0, endOf(lastDay))
	m.Set(family, column, endOf(lastDay), value)
	return 2
}

// valid reports whether a field can be listed under a name.
func valid(name []byte) bool { return len(name) <= codec.MaxFieldName && utf8.Valid(name) }
