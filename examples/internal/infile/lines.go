package infile

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxLine bounds one line of line protocol in bytes. A record of a merging schema is at most 8 KiB, so longer lines
// could not be stored anyway.
const MaxLine = 64 << 10

var (
	errLongLine = errors.New("the line is longer than 64 KiB")
	errOpenText = errors.New("a quoted text does not end")
)

// Lines splits line protocol, because the decoder does not report the position of a point. A line may span several
// lines of a file: quoted texts may contain newlines. A quoted text without an end consumes the lines after it, as in
// InfluxDB: a text must never be read as points.
type Lines struct {
	r    *bufio.Reader
	text []byte
	at   Position
}

// NewLines reads from any reader, such as the body of a request.
func NewLines(r io.Reader) *Lines { return &Lines{r: bufio.NewReaderSize(r, MaxLine)} }

// Next implements Reader. It returns blank lines and comments, too.
func (ls *Lines) Next() (Record, error) {
	l := Record{First: ls.at.Line + 1}
	ls.text = ls.text[:0]
	var s syntax
	some := false
	for {
		part, err := ls.r.ReadSlice('\n')
		s.scan(part)
		some = some || len(part) > 0
		l.Bytes += len(part)
		ls.at.Offset += int64(len(part))
		if l.Bytes <= MaxLine {
			ls.text = append(ls.text, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil && err != io.EOF || err == io.EOF && !some {
			return l, err
		}
		if err == nil || len(part) > 0 {
			ls.at.Line++
		}
		if err == nil && s.at == inText {
			continue
		}
		l.Last, l.Payload = ls.at.Line, bytes.TrimRight(ls.text, "\r\n")
		switch {
		case s.at == inText:
			l.Err = errOpenText
		case l.Bytes > MaxLine:
			l.Err = errLongLine
		}
		return l, nil
	}
}

// LineProtocol reads the lines of a file.
type LineProtocol struct {
	*Lines
	file *liner
}

// NewLineProtocol reads a file.
func NewLineProtocol(f *File) (*LineProtocol, error) {
	l, err := newLiner(f)
	if err != nil {
		return nil, err
	}
	return &LineProtocol{&Lines{r: l.r, at: l.at}, l}, nil
}

// Next implements Reader. It skips blank lines and comments.
func (l *LineProtocol) Next() (Record, error) {
	for {
		rec, err := l.Lines.Next()
		if err == nil && rec.Err == nil && Blank(rec.Payload) {
			continue
		}
		rec.Text = short(rec.Payload)
		return rec, err
	}
}

// Position implements Reader.
func (l *LineProtocol) Position() Position { return l.at }

// Seek implements Reader.
func (l *LineProtocol) Seek(p Position) error {
	if err := l.file.Seek(p); err != nil {
		return err
	}
	l.at = p
	return nil
}

// Blank reports whether a line is empty or a comment, without the decoder, which would cost 20 times as much.
func Blank(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r")
	return len(text) == 0 || text[0] == '#'
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
