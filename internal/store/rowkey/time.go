package rowkey

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// maxUnits is the latest time in any precision; its reverse is zero.
const maxUnits = math.MaxInt64

// ReverseLen is the number of decimal digits of math.MaxInt64, and so of every reverse time.
const ReverseLen = 19

// Precision is the unit in which a dataset's keys count time since 1970. The zero value is nanoseconds.
type Precision uint8

// The precisions and the latest time that a key of each can hold. Milliseconds end where a cell's timestamp, an int64
// of microseconds, ends too. Writes are refused after the year 9999.
const (
	Nanoseconds  Precision = iota // up to 2262-04-11
	Microseconds                  // up to the year 294247
	Milliseconds                  // up to the year 294247
)

// Valid reports whether p is one of the three.
func (p Precision) Valid() bool { return p <= Milliseconds }

// String returns the name of p in docs and the catalogue: ns, us or ms.
func (p Precision) String() string {
	switch p {
	case Nanoseconds:
		return "ns"
	case Microseconds:
		return "us"
	case Milliseconds:
		return "ms"
	}
	return "Precision(" + strconv.Itoa(int(p)) + ")"
}

// withID follows a precision in the catalogue if points have an identity besides their time. A program that does not
// know identities reads it as an unknown precision, and does not touch the dataset.
const withID = "+id"

// withFields follows a precision in the catalogue if heads hold fields. A program that does not know such heads would
// not write them; it reads an unknown precision, and does not touch the dataset.
const withFields = "+fields"

// TimeName returns the catalogue's name for the end of points' keys: p, and whether an id follows.
func (p Precision) TimeName(identity bool) string {
	if identity {
		return p.String() + withID
	}
	return p.String()
}

// WithFields returns what the catalogue has instead of a TimeName in a dataset whose heads hold fields.
func WithFields(name string) string { return name + withFields }

// HasFields reports whether WithFields has returned the name.
func HasFields(name string) bool { return strings.HasSuffix(name, withFields) }

// ParseTimeName returns the arguments of the TimeName call that returned name, with or without fields.
func ParseTimeName(name string) (p Precision, identity bool, err error) {
	short, identity := strings.CutSuffix(strings.TrimSuffix(name, withFields), withID)
	for p = Nanoseconds; p.Valid(); p++ {
		if p.String() == short {
			return p, identity, nil
		}
	}
	return 0, false, invalid.New(ErrInvalid, "precision", invalid.Quote(name), "ns, us or ms, or one of them and +id")
}

func (p Precision) unit() int64 {
	switch p {
	case Microseconds:
		return 1e3
	case Milliseconds:
		return 1e6
	}
	return 1
}

// Max returns the latest time that a key can hold, in units of p.
func (p Precision) Max() int64 {
	if p == Milliseconds {
		return math.MaxInt64 / 1000
	}
	return maxUnits
}

// MaxWritten returns the latest time that is accepted on write, in units of p: the last one of the year 9999 that p can
// hold.
func (p Precision) MaxWritten() int64 {
	units, _ := p.AtOrBefore(instant.Last)
	return units
}

// Units returns t in units of p, rounded down. Its error wraps ErrInvalid for a time before 1970 or after Max.
func (p Precision) Units(t time.Time) (int64, error) { return p.upTo(p.Max(), t) }

// WrittenUnits is Units for a point that is to be written: times after MaxWritten are refused, too.
func (p Precision) WrittenUnits(t time.Time) (int64, error) { return p.upTo(p.MaxWritten(), t) }

func (p Precision) upTo(last int64, t time.Time) (int64, error) {
	units, side := p.floor(t)
	if side != 0 || units > last {
		return 0, invalid.New(ErrInvalid, "time", instant.Text(t.UTC()), instant.Text(p.Time(0))+" to "+instant.Text(p.Time(last)))
	}
	return units, nil
}

// AtOrAfter returns the first whole unit that is not before t, or false if it is out of p's range.
func (p Precision) AtOrAfter(t time.Time) (int64, bool) {
	units, side := p.floor(t)
	switch {
	case side > 0:
		return 0, false
	case side < 0:
		return 0, true
	case !p.Time(units).Before(t):
		return units, true
	}
	return units + 1, units < p.Max()
}

// AtOrBefore returns the last whole unit that is not after t, or false if it is out of p's range: before 1970.
func (p Precision) AtOrBefore(t time.Time) (int64, bool) {
	units, side := p.floor(t)
	if side > 0 {
		return p.Max(), true
	}
	return units, side == 0
}

// floor returns the whole units of t, and whether t is out of range: side is -1 before the range and 1 after it.
func (p Precision) floor(t time.Time) (units int64, side int) {
	sec := t.Unix()
	if sec < 0 {
		return 0, -1
	}
	perSec := int64(time.Second) / p.unit()
	frac := int64(t.Nanosecond()) / p.unit()
	if last := p.Max() / perSec; sec > last || sec == last && frac > p.Max()%perSec {
		return 0, 1
	}
	return sec*perSec + frac, 0
}

// Time returns the time of a number of units, in UTC.
func (p Precision) Time(units int64) time.Time {
	perSec := int64(time.Second) / p.unit()
	return time.Unix(units/perSec, units%perSec*p.unit()).UTC()
}

// CellMicros returns the timestamp of the cell of a point at units: its time rounded to whole milliseconds, in
// microseconds, as Bigtable counts.
func (p Precision) CellMicros(units int64) int64 {
	switch p {
	case Microseconds:
		return units - units%1000
	case Milliseconds:
		return units * 1000
	}
	return units / 1e6 * 1000
}

func appendReverse(dst []byte, rev uint64) []byte {
	var b [ReverseLen]byte
	for i := ReverseLen - 1; i >= 0; i-- {
		b[i] = byte('0' + rev%10)
		rev /= 10
	}
	return append(dst, b[:]...)
}

// parseReverse returns the units whose reverse is the 19 digits s.
func parseReverse(s string) (int64, bool) {
	if len(s) != ReverseLen {
		return 0, false
	}
	var rev uint64
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		rev = rev*10 + uint64(c)
	}
	if rev > maxUnits {
		return 0, false
	}
	return int64(maxUnits - rev), true
}
