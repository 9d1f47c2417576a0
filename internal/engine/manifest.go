package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The manifest is a log of which table files make up the database. Pebble stops reading it at the first chunk that does
// not hold together and goes on with what it has: right for the torn end that a crash leaves, but a flipped byte in the
// middle would silently take the files of all later records away. So the manifest is walked here first.
//
// It is made of blocks of 32 KiB, and these of chunks: checksum (4), length (2), type (1), all little-endian, then the
// payload. A crash leaves a chunk cut short by the end of the file, or zeros; a chunk that is there in full with a
// wrong checksum is damage.
const (
	manifestBlock  = 32 << 10
	manifestHeader = 7
	chunkTypeMax   = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checkManifest reports damage in a manifest.
func checkManifest(fs vfs.FS, name string) error {
	file, err := fs.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: the manifest %s is missing", ErrDamaged, name)
	}
	if err != nil {
		return fmt.Errorf("engine: reading the manifest: %w", err)
	}
	defer file.Close()
	block := make([]byte, manifestBlock)
	for offset := int64(0); ; offset += manifestBlock {
		n, err := io.ReadFull(file, block)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("engine: reading the manifest: %w", err)
		}
		if at, ok := checkBlock(block[:n], n == manifestBlock); !ok {
			return fmt.Errorf("%w: the manifest %s at byte %d", ErrDamaged, name, offset+int64(at))
		}
		if n < manifestBlock {
			return nil
		}
	}
}

// checkBlock walks the chunks of one block and returns the place of the first that is damaged.
func checkBlock(b []byte, full bool) (at int, ok bool) {
	for at+manifestHeader <= len(b) {
		head := b[at : at+manifestHeader]
		sum, size, kind := binary.LittleEndian.Uint32(head), int(binary.LittleEndian.Uint16(head[4:])), head[6]
		if sum == 0 && size == 0 && kind == 0 {
			return 0, allZero(b[at:]) // nothing was written from here on
		}
		end := at + manifestHeader + size
		switch {
		case end > len(b) && !full:
			return 0, true // cut short by the end of the file
		case end > len(b), kind == 0, kind > chunkTypeMax:
			return at, false
		}
		if chunkSum(b[at+6:end]) != sum {
			return at, false
		}
		at = end
	}
	return 0, true
}

func chunkSum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
