package transfer

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	// A block ends after blockPoints or blockBytes, whichever comes first.
	blockPoints = 1000
	blockBytes  = 4 << 20
)

// closing is the line at the end of a block, with its sum, or of an export.
type closing struct {
	Sum        string           `json:"sum,omitempty"`
	End        string           `json:"end,omitempty"`
	Lines      int64            `json:"lines"`             // up to this one, inclusive
	Points     int64            `json:"points"`            // up to this one
	Datasets   map[string]int64 `json:"datasets,omitzero"` // points by dataset; only at the end
	Unreadable int64            `json:"unreadable"`        // points that the export left out, up to this line
}

const (
	sumStart = `{"sum":"`
	endStart = `{"end":"`
)

// record is one point of a block.
type record struct {
	line  int64
	d     *dataset
	point points.RawPoint
}

// blocks reads a file block by block.
type blocks struct {
	lines
	header *header
	points int64            // in whole blocks
	left   int64            // points that were left out
	before int64            // the part of left before the last point
	counts map[string]int64 // by dataset
	block  []record         // the last block read
	last   record
	ended  bool
	read   *error // the error of the block that ahead has read; nil if it has read none
}

// openBlocks reads the header of a file. key is the key of its sums, or nil.
func openBlocks(r io.Reader, key []byte) (*blocks, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if r == nil {
		return nil, invalid.New(tsdb.ErrInvalid, "reader", "nil", "an io.Reader with an export")
	}
	b := &blocks{lines: *newLines(r), counts: map[string]int64{}}
	text, err := b.lines.next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, &LineError{Line: 1, Err: errEmpty}
	case errors.Is(err, ErrDamaged) && !exported(b.buf):
		return nil, &LineError{Line: 1, Err: invalid.New(ErrVersion, "the beginning of the file", invalid.Quote(string(b.buf)), exportStart+" of a file of Export")}
	case err != nil:
		return nil, err
	}
	if b.header, err = parseHeader(text); err != nil {
		return nil, &LineError{Line: 1, Err: err}
	}
	if err := b.header.admitKey(key); err != nil {
		return nil, &LineError{Line: 1, Err: err}
	}
	b.key = key
	b.begin()
	b.note()
	return b, nil
}

// exportStart is how each export begins.
const exportStart = `{"tidemark":"export"`

// exported reports whether a first line begins as an export does, as far as it goes.
func exported(line []byte) bool {
	return len(line) > 0 && strings.HasPrefix(exportStart, string(line[:min(len(line), len(exportStart))]))
}

// ahead reads the first block, so that a header made without the key is not used; next then returns that block.
func (b *blocks) ahead() error {
	err := b.next()
	b.read = &err
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// errEmpty is the error for an empty file.
var errEmpty = fmt.Errorf("%w: it is empty", ErrVersion)

// next reads a block. Its points are in block until the next call. It returns io.EOF after the end of the file.
func (b *blocks) next() error {
	if read := b.read; read != nil {
		b.read = nil
		return *read
	}
	b.block = b.block[:0]
	if b.ended {
		return io.EOF
	}
	size := 0
	for {
		text, err := b.lines.next()
		if errors.Is(err, io.EOF) {
			err = &LineError{Line: b.line + 1, Err: errCut}
		}
		if err != nil {
			return err
		}
		switch {
		case bytes.HasPrefix(text, []byte(sumStart)):
			if err := b.sum(text); err != nil {
				return &LineError{Line: b.line, Err: err}
			}
			return nil
		case bytes.HasPrefix(text, []byte(endStart)):
			if err := b.finish(text); err != nil {
				return err
			}
			return io.EOF
		}
		d, p, err := b.header.parsePoint(text)
		if err != nil {
			return &LineError{Line: b.line, Err: err}
		}
		if size += len(b.buf); len(b.block) == blockPoints || size > blockBytes+maxLine {
			return &LineError{Line: b.line, Err: invalid.New(ErrDamaged, "block", "too long", "at most 1000 points and 4 MiB before a sum")}
		}
		b.note()
		b.block = append(b.block, record{line: b.line, d: d, point: p})
	}
}

// errCut is the error for a file without an end.
var errCut = invalid.New(ErrDamaged, "the line", "missing", "an end; the export or the copy was interrupted")

func (b *blocks) sum(text []byte) error {
	for _, r := range b.block {
		b.counts[r.d.Name]++
		b.last = r
		b.last.point.Payload = nil
	}
	b.points += int64(len(b.block))
	var sum closing
	if err := json.Unmarshal(append(bytes.Clone(text), '}'), &sum); err != nil {
		return invalid.New(ErrDamaged, "sum", err.Error(), "the sum of a block")
	}
	sinking := sum.Unreadable < b.left
	if b.left = sum.Unreadable; len(b.block) > 0 {
		b.before = b.left
	}
	return b.check("sum", text, closing{Sum: b.lines.chain.close(b.left)}, sinking)
}

// check fails if a line is not the closing line of what was read, or is known to be wrong.
func (b *blocks) check(name string, text []byte, want closing, wrong bool) error {
	want.Lines, want.Points, want.Unreadable = b.line, b.points, b.left
	line, err := json.Marshal(want)
	if err != nil {
		return err
	}
	if wrong || !bytes.Equal(text, line[:len(line)-1]) {
		return invalid.New(ErrDamaged, name, invalid.Quote(string(text)), string(line))
	}
	return nil
}

// finish checks the last line, and that nothing follows it.
func (b *blocks) finish(text []byte) error {
	if len(b.block) > 0 {
		return &LineError{Line: b.line, Err: invalid.New(ErrDamaged, "end", strconv.Itoa(len(b.block))+" points before it", "a sum before it")}
	}
	if err := b.check("end", text, closing{End: b.lines.chain.close(b.left), Datasets: b.counts}, false); err != nil {
		return &LineError{Line: b.line, Err: err}
	}
	if _, err := b.lines.next(); !errors.Is(err, io.EOF) {
		return &LineError{Line: b.line + 1, Err: invalid.New(ErrDamaged, "the line", "after the end", "no line after the end")}
	}
	b.ended = true
	return nil
}

// checkpoint returns the end of the last whole block.
func (b *blocks) checkpoint() Checkpoint {
	return Checkpoint{Line: b.line, Offset: b.offset, Points: b.points, Sum: hex.EncodeToString(b.lines.chain.sum[:])}
}
