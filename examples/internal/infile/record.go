package infile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxRecord is the most bytes of a record of CSV or NDJSON. A line of line protocol has at most 64 KiB.
const MaxRecord = 1 << 20

var errLong = errors.New("the record is longer than 1 MiB")

// Record is one record of a file.
type Record struct {
	// First and Last are its lines in the file, from 1. Of a Parquet file they are its row.
	First, Last int64
	// Payload is that of a message of NDJSON or line protocol. It is valid until the next call of Next.
	Payload []byte
	// Values are the fields of CSV or Parquet, as inbound.Message has them. They are valid until the next call of Next.
	Values map[string]any
	// Text is the record as it is in the file, or its beginning. A row of Parquet has none.
	Text string
	// Bytes is the size of the record.
	Bytes int
	// Err says why the record cannot be used. Others may follow.
	Err error
}

// String names the place of the record.
func (r Record) String() string {
	if r.First == r.Last {
		return fmt.Sprintf("line %d", r.First)
	}
	return fmt.Sprintf("lines %d to %d", r.First, r.Last)
}

// Position is where a record ends.
type Position struct {
	// Offset is how many unpacked bytes are before it, or how many rows of Parquet.
	Offset int64 `json:"offset"`
	// Line is how many lines are before it.
	Line int64 `json:"line"`
}

// Reader reads the records of a file. Its errors end the reading; io.EOF is the end of the file.
type Reader interface {
	Next() (Record, error)
	// Position is the end of the last record that Next has returned.
	Position() Position
	// Seek continues at a position of an earlier run. It is called before Next.
	Seek(Position) error
}

// liner reads physical lines of any length.
type liner struct {
	f  *File
	r  *bufio.Reader
	at Position
}

func newLiner(f *File) (*liner, error) {
	l := &liner{f: f, r: bufio.NewReaderSize(f, 64<<10)}
	mark, err := l.r.Peek(3)
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case bytes.HasPrefix(mark, []byte("\ufeff")):
		_, _ = l.r.Discard(3)
		l.at.Offset = 3
	case bytes.HasPrefix(mark, []byte{0xff, 0xfe}), bytes.HasPrefix(mark, []byte{0xfe, 0xff}):
		return nil, errors.New("the file is UTF-16; want UTF-8, as iconv -f UTF-16 -t UTF-8 makes it")
	}
	return l, nil
}

// Position implements Reader.
func (l *liner) Position() Position { return l.at }

// Seek implements Reader.
func (l *liner) Seek(p Position) error {
	if p.Offset < l.at.Offset {
		return fmt.Errorf("the position %d is before the first record", p.Offset)
	}
	if err := l.f.skip(l.r, l.at.Offset, p.Offset); err != nil {
		return err
	}
	l.at = p
	return nil
}

// line appends a line with its end to text, which keeps at most MaxRecord bytes and then one more. It calls each, if it
// is not nil, with each part of the line. The error is io.EOF if there is none.
func (l *liner) line(text []byte, each func(part []byte)) ([]byte, error) {
	for some := false; ; some = true {
		part, err := l.r.ReadSlice('\n')
		l.at.Offset += int64(len(part))
		if each != nil && len(part) > 0 {
			each(part)
		}
		text = append(text, part[:min(len(part), MaxRecord+1-len(text))]...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && (some || len(part) > 0), err == nil:
			l.at.Line++
			return text, nil
		}
		return text, err
	}
}

// NDJSON reads a message of JSON in each line.
type NDJSON struct {
	*liner
	text []byte
}

// NewNDJSON reads a file.
func NewNDJSON(f *File) (*NDJSON, error) {
	l, err := newLiner(f)
	return &NDJSON{liner: l}, err
}

// Next implements Reader. It skips empty lines.
func (n *NDJSON) Next() (rec Record, err error) {
	for {
		if n.text, err = n.line(n.text[:0], nil); err != nil {
			return rec, err
		}
		rec = Record{First: n.at.Line, Last: n.at.Line, Payload: bytes.TrimSpace(n.text), Bytes: len(n.text)}
		if len(rec.Payload) == 0 {
			continue
		}
		rec.Text = short(rec.Payload)
		if len(n.text) > MaxRecord {
			rec.Err = errLong
		}
		return rec, nil
	}
}

// maxText is how much of a record's text is kept for messages.
const maxText = 4 << 10

func short(text []byte) string { return string(text[:min(len(text), maxText)]) }
