package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds one line, in bytes, and with it what a request can make this program hold. A record of a merging schema
// is at most 8 KiB, so longer lines could not be stored anyway.
const maxLine = 64 << 10

var (
	errLongLine = errors.New("the line is longer than 64 KiB")
	errOpenText = errors.New("a quoted text does not end")
)

// line is one line of line protocol. It may take several lines of a file, as quoted texts may hold newlines.
type line struct {
	first, last int    // its lines in the file, from 1
	text        []byte // until the next call of next
}

func (l line) String() string {
	if l.first == l.last {
		return fmt.Sprintf("line %d", l.first)
	}
	return fmt.Sprintf("lines %d to %d", l.first, l.last)
}

// lines splits line protocol, as the decoder does not say where in a file a point stands. A quoted text that does not end
// takes the lines behind it with it, as in InfluxDB: what stands in a text must never be taken for points.
type lines struct {
	r    *bufio.Reader
	text []byte
	read int // lines of the file
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, maxLine)} }

// next returns the next line. Its error is io.EOF after the last one, errLongLine or errOpenText for a line that cannot be
// used, after which others may follow, and else that of reading.
func (ls *lines) next() (line, error) {
	l := line{first: ls.read + 1}
	ls.text = ls.text[:0]
	var s syntax
	long, some := false, false
	for {
		part, err := ls.r.ReadSlice('\n')
		s.scan(part)
		some = some || len(part) > 0
		if long = long || len(ls.text)+len(part) > maxLine; !long {
			ls.text = append(ls.text, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil && err != io.EOF || err == io.EOF && !some {
			return l, err
		}
		if err == nil || len(part) > 0 {
			ls.read++
		}
		if err == nil && s.at == inText {
			continue
		}
		l.last, l.text = ls.read, bytes.TrimRight(ls.text, "\r\n")
		switch {
		case s.at == inText:
			return l, errOpenText
		case long:
			return l, errLongLine
		}
		return l, nil
	}
}

// syntax follows a line as far as it takes to know whether a newline ends it. Quotes mean something only where the value of
// a field begins.
type syntax struct {
	at      section
	escaped bool // by the byte before
}

type section uint8

const (
	atStart section = iota
	inHead          // the measurement and the tags
	inField         // the name of a field
	atValue         // where a quote counts
	inValue
	inText // a quoted value
	inTail // the time, or a comment
)

func (s *syntax) scan(text []byte) {
	for _, c := range text {
		if s.escaped {
			s.escaped = false
			continue
		}
		s.escaped = c == '\\' && s.at != inTail
		switch s.at {
		case atStart:
			if c == '#' {
				s.at = inTail
			} else if c != ' ' {
				s.at = inHead
			}
		case inHead:
			if c == ' ' {
				s.at = inField
			}
		case inField:
			if c == '=' {
				s.at = atValue
			}
		case atValue, inValue:
			switch {
			case c == '"' && s.at == atValue:
				s.at = inText
			case c == ',':
				s.at = inField
			case c == ' ':
				s.at = inTail
			default:
				s.at = inValue
			}
		case inText:
			if c == '"' {
				s.at = inValue
			}
		}
	}
}
