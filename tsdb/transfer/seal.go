package transfer

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Each line ends with a CRC-32C over all lines up to it, so that the first one at fault is known, and each block with a
// SHA-256 over itself and the sum of the block before it; with a key, with an HMAC of that.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	sealStart = `,"crc":"`
	sealEnd   = "\"}\n"
	sealLen   = len(sealStart) + 8 + len(sealEnd)
)

// chain is what lines up to one are sealed with.
type chain struct {
	line   int64
	offset int64
	crc    uint32
	sum    [sha256.Size]byte // of the last whole block
	hash   hash.Hash         // of the block so far
	key    []byte            // nil for sums that anybody can make
}

func newChain(key []byte) chain {
	c := chain{key: key}
	c.begin()
	return c
}

// seal appends to a line what seals it. A line that ends a block or the file is of no block.
func (c *chain) seal(line []byte, ofBlock bool) []byte {
	c.crc = crc32.Update(c.crc, castagnoli, line)
	line = appendCRC(line, c.crc)
	c.line++
	c.offset += int64(len(line))
	if ofBlock {
		_, _ = c.hash.Write(line)
	}
	return line
}

func appendCRC(dst []byte, crc uint32) []byte {
	dst = append(dst, sealStart...)
	for shift := 28; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[crc>>shift&15])
	}
	return append(dst, sealEnd...)
}

// close ends a block: it returns its sum, and begins the next one with it. With a key the sum is also over the number of points
// that were left out so far, which is in no line of the block.
func (c *chain) close(unreadable int64) string {
	if c.key != nil {
		_, _ = c.hash.Write(strconv.AppendInt(nil, unreadable, 10))
	}
	c.hash.Sum(c.sum[:0])
	c.begin()
	return hex.EncodeToString(c.sum[:])
}

// begin begins a block behind the one that sum is of.
func (c *chain) begin() {
	c.hash = sha256.New()
	if c.key != nil {
		c.hash = hmac.New(sha256.New, c.key)
	}
	_, _ = c.hash.Write(c.sum[:])
}

// lines reads sealed lines.
type lines struct {
	chain
	r   *bufio.Reader
	buf []byte
}

func newLines(r io.Reader) *lines {
	return &lines{chain: newChain(nil), r: bufio.NewReaderSize(r, 64<<10)}
}

// next returns a line without what seals it, until the next call. Its error is io.EOF where no byte is left, and else a
// *LineError.
func (l *lines) next() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		l.buf = append(l.buf, part...)
		switch {
		case len(l.buf) > maxLine:
			return nil, l.damaged("length", "over "+strconv.Itoa(maxLine)+" bytes", "at most that")
		case err == nil:
			return l.open()
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(l.buf) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, &LineError{Line: l.line + 1, Err: errTorn}
		default:
			return nil, &LineError{Line: l.line + 1, Err: errtype.Foreign("transfer.File", err)}
		}
	}
}

// errTorn is of a line that the file ends within.
var errTorn = invalid.New(ErrDamaged, "the line", "cut off", "a whole line; the export or the copy was interrupted")

func (l *lines) open() ([]byte, error) {
	if len(l.buf) < sealLen {
		return nil, l.damaged("the line", strconv.Itoa(len(l.buf))+" bytes", "at least "+strconv.Itoa(sealLen))
	}
	text, seal := l.buf[:len(l.buf)-sealLen], l.buf[len(l.buf)-sealLen:]
	crc := crc32.Update(l.crc, castagnoli, text)
	if want := appendCRC(nil, crc); !bytes.Equal(seal, want) {
		return nil, l.damaged("crc", invalid.Quote(string(seal)), strconv.Quote(string(want))+" for what the lines up to here hold")
	}
	l.crc = crc
	l.offset += int64(len(l.buf))
	l.line++
	return text, nil
}

// note counts the last line into its block.
func (l *lines) note() { _, _ = l.hash.Write(l.buf) }

func (l *lines) damaged(field, value, limit string) error {
	return &LineError{Line: l.line + 1, Err: invalid.New(ErrDamaged, field, value, limit)}
}
