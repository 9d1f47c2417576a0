package adopt

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// timeFormat is how a row key spells a time.
type timeFormat struct {
	encoding timeEncoding
	unit     int64  // in nanoseconds
	width    int    // in bytes; 0 if it varies
	max      uint64 // the number that the time is subtracted from; 0 for times that are not reversed
}

type timeEncoding uint8

const (
	decimalTime timeEncoding = iota
	bigEndianTime
	rfc3339Time
	cellTimestamp // not in the key
)

var timeUnits = map[string]int64{"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}

func (m *Mapping) readTime(f *file, r *mistakes) {
	t := &f.Time
	if !m.inKey {
		m.time = timeFormat{encoding: cellTimestamp, unit: 1e3}
		if line := max(t.Encoding.line, t.Unit.line, t.Width.line, t.Reversed.line); line > 0 {
			r.add(line, "time is described, but key.parts has no time; want time as one of key.parts, or no description for times in the cells")
		}
		if f.Cells.line > 0 && f.Cells.value != "time" {
			r.add(f.Cells.line, "cells is %q, but key.parts has no time; want time: the timestamp of a cell is then that of its point", f.Cells.value)
		}
		m.cells = cellPoint
		if m.ids {
			r.add(f.Key.Parts[0].line, "key.parts has an id but no time; want both, or neither")
		}
		return
	}
	switch f.Cells.value {
	case "", "unknown":
	case "written":
		m.cells = cellWritten
	case "time":
		m.cells = cellPoint
	default:
		r.add(f.Cells.line, "cells is %q; want written if the timestamps of cells say when they were written, time if they are those of the points, or unknown", f.Cells.value)
	}
	switch t.Encoding.value {
	case "", "decimal":
	case "big_endian":
		m.time.encoding = bigEndianTime
	case "rfc3339":
		m.time.encoding = rfc3339Time
	default:
		r.add(t.Encoding.line, "time.encoding is %q; want decimal, big_endian or rfc3339", t.Encoding.value)
	}
	m.time.unit = timeUnits[t.Unit.value]
	switch {
	case m.time.encoding == rfc3339Time:
		m.time.unit = 1
		if line := max(t.Unit.line, t.Reversed.line); line > 0 {
			r.add(line, "time.unit and time.reversed are for numbers; want neither with encoding rfc3339")
		}
	case m.time.unit == 0:
		r.add(max(t.Unit.line, t.Encoding.line), "time.unit is %q; want s, ms, us or ns", t.Unit.value)
		m.time.unit = 1
	}
	if t.Width.line > 0 {
		n, err := strconv.Atoi(t.Width.value)
		if err != nil || n < 1 || n > 35 {
			r.add(t.Width.line, "time.width is %q; want the number of characters, 1 to 35", t.Width.value)
		}
		m.time.width = n
		if _, ok := fraction(n); m.time.encoding == rfc3339Time && !ok {
			r.add(t.Width.line, "time.width is %d; want 20 for whole seconds, or 22 to 30 for a fraction", n)
		}
		if m.time.encoding == decimalTime && n > 20 {
			r.add(t.Width.line, "time.width is %d; want at most 20 digits", n)
		}
	}
	if m.time.encoding == bigEndianTime {
		if t.Width.line > 0 && m.time.width != 8 {
			r.add(t.Width.line, "time.width is %q; want 8, or none, with encoding big_endian", t.Width.value)
		}
		m.time.width = 8
	}
	if t.Reversed.line > 0 {
		n, err := strconv.ParseUint(t.Reversed.value, 10, 64)
		if err != nil || n == 0 {
			r.add(t.Reversed.line, "time.reversed is %q; want the number that times are subtracted from, such as 9223372036854775807", t.Reversed.value)
		}
		m.time.max = n
	}
	for i := range m.parts {
		if m.parts[i].role == timePart {
			m.parts[i].width = m.time.width
			if i < len(m.parts)-1 && m.sep == "" && m.time.width == 0 {
				r.add(f.Key.Parts[i].line, "time has no width; want one, because key.separator is empty and parts follow")
			}
		}
	}
}

// precision returns the coarsest precision that holds all times.
func (f timeFormat) precision() rowkey.Precision {
	if f.encoding == rfc3339Time {
		switch digits, ok := fraction(f.width); {
		case ok && digits <= 3:
			return rowkey.Milliseconds
		case ok && digits <= 6:
			return rowkey.Microseconds
		}
		return rowkey.Nanoseconds
	}
	switch f.unit {
	case 1:
		return rowkey.Nanoseconds
	case 1e3:
		return rowkey.Microseconds
	}
	return rowkey.Milliseconds
}

// fraction returns the digits of a second's fraction in an RFC 3339 time in UTC of a width.
func fraction(width int) (digits int, ok bool) {
	switch {
	case width == 20:
		return 0, true
	case width >= 22 && width <= 30:
		return width - 21, true
	}
	return 0, false
}

// unitOf returns the nanoseconds of a precision's unit.
func unitOf(p rowkey.Precision) int64 { return p.Time(1).UnixNano() }

// parse returns the time of a text in units of p. Each time has one text only, so that no two rows are the same point.
func (f timeFormat) parse(s string, p rowkey.Precision) (units int64, problem string) {
	var n uint64
	switch f.encoding {
	case rfc3339Time:
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil || f.text(t) != s {
			return 0, "want RFC 3339 in UTC with Z, and always the same number of digits"
		}
		units, err := p.WrittenUnits(t)
		if err != nil {
			return 0, "want 1970 or later, and a time that " + p.String() + " can hold"
		}
		if !p.Time(units).Equal(t) {
			return 0, "finer than the dataset's precision " + p.String()
		}
		return units, ""
	case bigEndianTime:
		if len(s) != 8 {
			return 0, "want 8 bytes"
		}
		n = binary.BigEndian.Uint64([]byte(s))
	default:
		var err error
		if n, err = strconv.ParseUint(s, 10, 64); err != nil || s[0] == '+' {
			return 0, "want decimal digits"
		}
		if f.width > 0 && len(s) != f.width {
			return 0, fmt.Sprintf("has %d digits; want %d", len(s), f.width)
		}
		if f.width == 0 && len(s) > 1 && s[0] == '0' {
			return 0, "begins with 0; want time.width in the mapping for such times"
		}
	}
	if f.max > 0 {
		if n > f.max {
			return 0, fmt.Sprintf("%d is more than the %d that times are subtracted from", n, f.max)
		}
		n = f.max - n
	}
	return f.units(n, p)
}

// units converts a time in the foreign unit.
func (f timeFormat) units(n uint64, p rowkey.Precision) (units int64, problem string) {
	to := unitOf(p)
	if f.unit < to {
		if ratio := uint64(to / f.unit); n%ratio != 0 {
			return 0, "finer than the dataset's precision " + p.String()
		}
		n /= uint64(to / f.unit)
	} else {
		hi, lo := bits.Mul64(n, uint64(f.unit/to))
		if n = lo; hi != 0 {
			n = math.MaxUint64
		}
	}
	if n > uint64(p.MaxWritten()) {
		return 0, "later than " + instant.Text(p.Time(p.MaxWritten())) + ", the last time of the precision " + p.String()
	}
	return int64(n), ""
}

// text returns the RFC 3339 text of a time.
func (f timeFormat) text(t time.Time) string {
	digits, ok := fraction(f.width)
	switch {
	case !ok:
		return instant.Text(t.UTC())
	case digits == 0:
		return t.UTC().Format("2006-01-02T15:04:05Z")
	}
	return t.UTC().Format("2006-01-02T15:04:05." + strings.Repeat("0", digits) + "Z")
}
