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

// Each line ends with a CRC-32C over all lines up to it, so the first faulty line is known. Each block ends with a
// SHA-256 over itself and the sum of the block before it; with a key, with an HMAC of that.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	sealStart = `,"crc":"`
	sealEnd   = "\"}\n"
	sealLen   = len(sealStart) + 8 + len(sealEnd)
)

// chain is the state of the seals up to a line.
type chain struct {
	line   int64
	offset int64
	crc    uint32
	sum    [sha256.Size]byte // sum of the last whole block
	hash   hash.Hash         // of the current block
	key    []byte            // nil: anybody can compute the sums
}

func newChain(key []byte) chain {
	c := chain{key: key}
	c.begin()
	return c
}

// seal appends the seal to a line. The last line of a block or of the file belongs to no block.
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

// close ends a block: it returns the block's sum, and starts the next block with it. With a key, the sum also
// includes the number of points left out so far, which is in no line of the block.
func (c *chain) close(unreadable int64) string {
	if c.key != nil {
		_, _ = c.hash.Write(strconv.AppendInt(nil, unreadable, 10))
	}
	c.hash.Sum(c.sum[:0])
	c.begin()
	return hex.EncodeToString(c.sum[:])
}

// begin starts the block after the one with this sum.
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

// next returns a line without its seal, valid until the next call. It returns io.EOF at the end of the file, else a
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

// errTorn is the error for a file that ends within a line.
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

// note adds the last line to its block.
func (l *lines) note() { _, _ = l.hash.Write(l.buf) }

func (l *lines) damaged(field, value, limit string) error {
	return &LineError{Line: l.line + 1, Err: invalid.New(ErrDamaged, field, value, limit)}
}
