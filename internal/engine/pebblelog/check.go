package pebblelog

import (
	"bytes"
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

	"github.com/tidemark-go/tidemark/internal/diskerr"
	"github.com/tidemark-go/tidemark/internal/reach"
)

// ErrDamaged says that a log is not what was written.
var ErrDamaged = diskerr.ErrDamaged

// A log consists of blocks of 32 KiB. A block consists of chunks: a checksum of everything after the length (4 bytes),
// the length of the payload (2), an encoding (1), in the write-ahead log also the log's number (4) and how many bytes
// of the log were synced (8), then the payload. Integers are little-endian. If the rest of a block is too short for a
// header, it is zeros. A closed log ends with a header without a checksum that has the next log's number.
const (
	logBlock       = 32 << 10
	legacyHeader   = 7  // encodings 1 to 4
	numberedHeader = 11 // encodings 5 to 8
	offsetHeader   = 19 // encodings 9 to 12
	maxEncoding    = 12
	sectorSize     = 512
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Check checks the manifest and all write-ahead logs of the folder. It returns the logs, except the newest, that were
// not closed. Their ends are unknown, so they are damaged if the manifest still needs them.
func (l *List) Check(manifest string) (unclosed []string, err error) {
	if _, err := checkLog(l, manifest, nil, l.durable(l.PathBase(manifest))); err != nil {
		return nil, err
	}
	names, err := l.List(l.dir)
	if err != nil {
		return nil, fmt.Errorf("listing the folder: %w", err)
	}
	newest := uint64(0)
	open := make(map[string]uint64)
	for _, name := range names {
		number, ok := logNumber(name)
		if !ok {
			continue
		}
		n := uint32(number)
		closed, err := checkLog(l, l.PathJoin(l.dir, name), &n, 0)
		if err != nil {
			return nil, err
		}
		newest = max(newest, number)
		if !closed {
			open[name] = number
		}
	}
	for name, number := range open {
		if number < newest {
			unclosed = append(unclosed, name)
		}
	}
	return unclosed, nil
}

// IsLog reports whether a file is a write-ahead log, by its name.
func IsLog(name string) bool { return strings.HasSuffix(name, ".log") }

// logNumber reads the number in the name of a write-ahead log.
func logNumber(name string) (uint64, bool) {
	digits, _, _ := strings.Cut(strings.TrimSuffix(name, ".log"), "-")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && IsLog(name)
}

// checkLog returns an error if a log is damaged, and reports whether the log was closed. A write-ahead log has a
// number; the manifest has none. The first durable bytes of the log are known to have been synced.
func checkLog(fs vfs.FS, name string, number *uint32, durable int64) (closed bool, err error) {
	file, err := fs.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("%w: %s is missing", ErrDamaged, path.Base(name))
	}
	if err != nil {
		return false, fmt.Errorf("reading a log: %w", err)
	}
	defer file.Close()
	buf := make([]byte, logBlock)
	end := int64(-1) // where the log ends, once that is known
	for offset := int64(0); ; offset += logBlock {
		n, err := io.ReadFull(file, buf)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return false, fmt.Errorf("reading a log: %w", err)
		}
		from := 0
		if end < 0 {
			at, verdict := checkLogBlock(buf[:n], number)
			switch verdict {
			case logDamaged:
				return false, fmt.Errorf("%w: %s at byte %d", ErrDamaged, path.Base(name), offset+int64(at))
			case logClosed:
				return true, nil
			case logEnds:
				if end, from = offset+int64(at), at+1; end < durable {
					return false, fmt.Errorf("%w: %s at byte %d, which was synced", ErrDamaged, path.Base(name), end)
				}
			case logGoesOn:
				from = n
			}
		}
		if at := findProof(buf[:n], from, number, end); at >= 0 {
			return false, fmt.Errorf("%w: %s at byte %d, but the chunk at byte %d was written after that byte was synced", ErrDamaged, path.Base(name), end, offset+int64(at))
		}
		if n < logBlock {
			return false, nil
		}
	}
}

// findProof searches a block, from a byte on, for a chunk that was written after byte end of the log was synced. It
// returns where that chunk begins, or -1. After a hole the start of the next chunk is unknown, so it tries every byte.
func findProof(b []byte, from int, number *uint32, end int64) int {
	for at := from; at+legacyHeader < len(b); at++ {
		header := headerSize(b[at+6], number)
		switch {
		case header == 0 || at+header >= len(b):
			continue
		case number != nil && (header < offsetHeader || binary.LittleEndian.Uint32(b[at+7:]) != *number ||
			binary.LittleEndian.Uint64(b[at+11:]) <= uint64(end)):
			continue
		}
		size := int(binary.LittleEndian.Uint16(b[at+4:]))
		if stop := at + header + size; size > 0 && stop <= len(b) && chunkSum(b[at+6:stop]) == binary.LittleEndian.Uint32(b[at:]) {
			return at
		}
	}
	return -1
}

type logVerdict uint8

const (
	logGoesOn logVerdict = iota
	logEnds              // with a chunk that was not, or not wholly, written
	logClosed
	logDamaged
)

// checkLogBlock checks the chunks of one block. at is where the chunk that ends the check begins.
func checkLogBlock(b []byte, number *uint32) (at int, v logVerdict) {
	for at+legacyHeader <= len(b) {
		sum, size, encoding := binary.LittleEndian.Uint32(b[at:]), int(binary.LittleEndian.Uint16(b[at+4:])), b[at+6]
		if sum == 0 && size == 0 && encoding == 0 {
			switch {
			case !allZero(b[at:]):
				return at, torn(b, at, at+offsetHeader)
			case logBlock-at < offsetHeader:
				return at, logGoesOn // the padding of a block
			}
			return at, logEnds // never written
		}
		header := headerSize(encoding, number)
		switch {
		case header > 0 && at+header > len(b) && len(b) < logBlock:
			return at, logEnds // cut short by the end of the file
		case header == 0 || at+header > len(b):
			return at, torn(b, at, at+offsetHeader)
		}
		if number != nil {
			switch n := binary.LittleEndian.Uint32(b[at+7:]); {
			case n == *number+1 && size == 0:
				return at, logClosed
			case n != *number:
				return at, torn(b, at, at+offsetHeader)
			}
		}
		end := at + header + size
		switch {
		case end > len(b) && len(b) < logBlock:
			// Cut short by the end of the file, unless it is all there and its length is wrong.
			if fitsShorter(b[at:], header, sum) {
				return at, torn(b, at, len(b))
			}
			return at, logEnds
		case end > len(b):
			return at, torn(b, at, at+header)
		case chunkSum(b[at+6:end]) != sum:
			return at, torn(b, at, end)
		}
		at = end
	}
	if at < len(b) && len(b) < logBlock {
		return at, logEnds // cut short within a header
	}
	return at, logGoesOn
}

// headerSize returns the size of an encoding's header, or 0 if the log does not use the encoding.
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

// torn judges an invalid chunk, in the bytes from at to end. If one of its sectors was never written, a
// crash of the machine tore it. In the first sector, only the bytes from the chunk's begin count.
func torn(b []byte, at, end int) logVerdict {
	for end = min(end, len(b)); at < end; {
		next := (at/sectorSize + 1) * sectorSize
		if allZero(b[at:min(next, len(b))]) {
			reach.Point(reach.TornLog)
			return logEnds
		}
		at = next
	}
	return logDamaged
}

// fitsShorter reports whether the checksum fits a shorter payload than the header says.
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

func allZero(b []byte) bool { return bytes.Count(b, []byte{0}) == len(b) }
