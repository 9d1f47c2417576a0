package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds one line in bytes, and so the memory of a request. A record of a merging schema is at most 8 KiB, so
// longer lines could not be stored anyway.
const maxLine = 64 << 10

var (
	errLongLine = errors.New("the line is longer than 64 KiB")
	errOpenText = errors.New("a quoted text does not end")
)

// line is one line of line protocol. It may span several lines of a file, because quoted texts may contain newlines.
type line struct {
	first, last int    // its lines in the file, from 1
	text        []byte // valid until the next call of next
}

func (l line) String() string {
	if l.first == l.last {
		return fmt.Sprintf("line %d", l.first)
	}
	return fmt.Sprintf("lines %d to %d", l.first, l.last)
}

// lines splits line protocol, because the decoder does not report the position of a point. A quoted text without an end
// consumes the lines after it, as in InfluxDB: a text must never be read as points.
type lines struct {
	r    *bufio.Reader
	text []byte
	read int // lines of the file
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, maxLine)} }

// next returns the next line. The error is io.EOF after the last one, errLongLine or errOpenText for an invalid line,
// after which others may follow, or else a read error.
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

// syntax parses a line only as far as needed to know whether a newline ends it. Quotes count only at the beginning of a
// field's value.
type syntax struct {
	at      section
	escaped bool // by the previous byte
}

type section uint8

const (
	atStart section = iota
	inHead          // the measurement and the tags
	inField         // the name of a field
	atValue         // where a quote begins a text
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
