package window

import (
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
)

// Span is a length of time. A time.Duration ends at 292 years, which are soon reached by the points of a few centuries,
// or by the years of a few hundred entities together. The zero value is 0. A Span is comparable.
type Span struct {
	seconds int64
	nanos   int32 // 0 to 999,999,999
}

// newSpan returns the span of a duration.
func newSpan(d time.Duration) Span {
	seconds, nanos := int64(d/time.Second), int32(d%time.Second)
	if nanos < 0 {
		seconds, nanos = seconds-1, nanos+1e9
	}
	return Span{seconds, nanos}
}

// spanOf returns the span from one time to another; 0 if that is not later.
func spanOf(from, to time.Time) Span {
	if !from.Before(to) {
		return Span{}
	}
	seconds, nanos := instant.Between(from, to)
	return Span{seconds, nanos}
}

// add returns the sum of two spans.
func (s Span) add(o Span) Span {
	s.seconds, s.nanos = s.seconds+o.seconds, s.nanos+o.nanos
	if s.nanos >= 1e9 {
		s.seconds, s.nanos = s.seconds+1, s.nanos-1e9
	}
	return s
}

// sub returns s minus o.
func (s Span) sub(o Span) Span {
	s.seconds, s.nanos = s.seconds-o.seconds, s.nanos-o.nanos
	if s.nanos < 0 {
		s.seconds, s.nanos = s.seconds-1, s.nanos+1e9
	}
	return s
}

// Seconds returns the seconds of s.
func (s Span) Seconds() float64 { return float64(s.seconds) + float64(s.nanos)/1e9 }

// duration returns s as a time.Duration, and false if it is too long for one.
func (s Span) duration() (time.Duration, bool) {
	d := time.Duration(s.seconds)*time.Second + time.Duration(s.nanos)
	return d, newSpan(d) == s
}

// String returns s in hours, minutes and seconds, as that of a time.Duration does.
func (s Span) String() string {
	if d, ok := s.duration(); ok {
		return d.String()
	}
	const hour = 3600
	rest := Span{s.seconds % hour, s.nanos}
	d, _ := rest.duration()
	return fmt.Sprintf("%dh%dm%vs", s.seconds/hour, d/time.Minute, (d % time.Minute).Seconds())
}
