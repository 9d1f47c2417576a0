package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble keeps two kinds of logs: the manifest, which says what files make up the database, and the write-ahead log. When
// it reads one and comes to a chunk that does not hold together, it mostly takes that for the torn end that a crash leaves,
// and goes on without what follows; a flipped bit in the middle silently loses all that was written after it. So the logs
// are walked here first. A crash leaves a chunk that is cut short by the end of the file, or one with pages that were never
// written and read as zeros. A chunk that is there in full, with a wrong checksum, is damage.
//
// That holds because the engine never writes a log over an older one (see logFS), where a torn chunk would end in
// old bytes.
//
// A log is made of blocks of 32 KiB, and these of chunks: checksum of what follows the length (4), length of the payload
// (2), encoding (1), in the write-ahead log also the log's number (4) and an offset (8), then the payload. Integers are
// little-endian. A block's end that is too short for a header is zeros.
const (
	logBlock       = 32 << 10
	legacyHeader   = 7  // encodings 1 to 4
	numberedHeader = 11 // encodings 5 to 8
	offsetHeader   = 19 // encodings 9 to 12
	maxEncoding    = 12
	pageSize       = 4 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checkLogs checks the manifest and all write-ahead logs of a folder.
func checkLogs(fs vfs.FS, dir, manifest string) error {
	if err := checkLog(fs, manifest, nil); err != nil {
		return err
	}
	names, err := fs.List(dir)
	if err != nil {
		return fmt.Errorf("listing the folder: %w", err)
	}
	for _, name := range names {
		base, ok := strings.CutSuffix(name, ".log")
		if !ok {
			continue
		}
		digits, _, _ := strings.Cut(base, "-")
		number, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			continue
		}
		n := uint32(number)
		if err := checkLog(fs, fs.PathJoin(dir, name), &n); err != nil {
			return err
		}
	}
	return nil
}

// checkLog reports damage in a log. A write-ahead log has a number, the manifest has none.
func checkLog(fs vfs.FS, name string, number *uint32) error {
	file, err := fs.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing", ErrDamaged, path.Base(name))
	}
	if err != nil {
		return fmt.Errorf("reading a log: %w", err)
	}
	defer file.Close()
	block := make([]byte, logBlock)
	for offset := int64(0); ; offset += logBlock {
		n, err := io.ReadFull(file, block)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("reading a log: %w", err)
		}
		at, verdict := checkLogBlock(block[:n], number)
		switch {
		case verdict == logDamaged:
			return fmt.Errorf("%w: %s at byte %d", ErrDamaged, path.Base(name), offset+int64(at))
		case verdict == logEnds, n < logBlock:
			return nil
		}
	}
}

type logVerdict uint8

const (
	logGoesOn logVerdict = iota
	logEnds
	logDamaged
)

// checkLogBlock walks the chunks of one block. at is where the one that ends the walk begins.
func checkLogBlock(b []byte, number *uint32) (at int, v logVerdict) {
	for at+legacyHeader <= len(b) {
		sum, size, encoding := binary.LittleEndian.Uint32(b[at:]), int(binary.LittleEndian.Uint16(b[at+4:])), b[at+6]
		if sum == 0 && size == 0 && encoding == 0 {
			switch {
			case !allZero(b[at:]):
				return at, torn(b, at, len(b), true)
			case logBlock-at < offsetHeader:
				return at, logGoesOn // the padding of a block
			}
			return at, logEnds // never written
		}
		header := headerSize(encoding, number)
		if header == 0 {
			return at, torn(b, at, len(b), true)
		}
		if at+header > len(b) {
			return at, torn(b, at, len(b), len(b) == logBlock)
		}
		if number != nil {
			switch n := binary.LittleEndian.Uint32(b[at+7:]); {
			case n == *number+1 && size == 0:
				return at, logEnds // how a log that was closed ends
			case n != *number:
				return at, torn(b, at, len(b), true)
			}
		}
		end := at + header + size
		switch {
		case end > len(b) && len(b) < logBlock:
			// Cut short by the end of the file, unless it is all there and its length is wrong.
			return at, torn(b, at, len(b), fitsShorter(b[at:], header, sum))
		case end > len(b):
			return at, torn(b, at, len(b), true)
		case chunkSum(b[at+6:end]) != sum:
			return at, torn(b, at, end, true)
		}
		at = end
	}
	return at, logGoesOn
}

// headerSize gives the size of the header of an encoding, or 0 for one that the log does not have.
func headerSize(encoding byte, number *uint32) int {
	switch {
	case encoding == 0 || encoding > maxEncoding:
		return 0
	case number == nil && encoding <= 4:
		return legacyHeader
	case number == nil || encoding <= 4:
		return 0
	case encoding <= 8:
		return numberedHeader
	}
	return offsetHeader
}

// torn decides on the chunk from at up to end, which does not hold together. Where a page of it was never written, it is
// the end that a crash of the machine left, whatever it looks like.
func torn(b []byte, at, end int, damaged bool) logVerdict {
	if !damaged || hasUnwrittenPage(b, at, end) {
		return logEnds
	}
	return logDamaged
}

// hasUnwrittenPage says whether one of the pages that a chunk goes on to is zeros, or the rest of the one that it begins in:
// what was synced of a page ends where the chunk begins, and pages behind it may have been written without it. Blocks
// begin at a page. A few zeros at the beginning of a page that the file ends in say nothing.
func hasUnwrittenPage(b []byte, at, end int) bool {
	const least = 16
	for page := at; page < end; {
		next := (page/pageSize + 1) * pageSize
		part := b[page:min(next, len(b))]
		if (page == at || len(part) >= least) && allZero(part) {
			return true
		}
		page = next
	}
	return false
}

// fitsShorter says whether a shorter length than the chunk's gives its checksum.
func fitsShorter(b []byte, header int, sum uint32) bool {
	c := crc32.Checksum(b[6:header], castagnoli)
	for i := header; ; i++ {
		if maskSum(c) == sum {
			return true
		}
		if i == len(b) {
			return false
		}
		c = crc32.Update(c, castagnoli, b[i:i+1])
	}
}

func chunkSum(b []byte) uint32 { return maskSum(crc32.Checksum(b, castagnoli)) }

func maskSum(c uint32) uint32 { return (c>>15 | c<<17) + 0xa282ead8 }

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
