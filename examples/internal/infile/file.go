package infile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// ErrDamaged is the error of a file whose bytes are not what was written, or that is cut off.
var ErrDamaged = errors.New("the file is damaged or incomplete")

// headBytes is how much of the beginning of a file identifies it.
const headBytes = 64 << 10

// maxWindow is the largest window of a zstd frame, which is how much memory a decoder takes: that of zstd --ultra -22.
const maxWindow = 128 << 20

// File is an open file. Read returns its unpacked bytes.
type File struct {
	Name string
	// Size is the number of bytes of the file as it is, and -1 if it is not known, as of standard input.
	Size int64
	// Head is a hash of its beginning.
	Head string

	raw      *os.File // nil for standard input
	seekable bool     // whether raw can be read from any position, and is not packed
	count    *counter
	begin    *bufio.Reader // the file as it is
	r        *bufio.Reader // its unpacked bytes
	close    func()
}

// counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// Open opens a file, or standard input if the name is "-". The bytes say whether it is packed.
func Open(name string, stdin io.Reader) (*File, error) {
	f := &File{Name: name, Size: -1, close: func() {}}
	in, regular := stdin, false
	if name != "-" {
		raw, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		info, err := raw.Stat()
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a folder; want a file", name)
		}
		if err != nil {
			return nil, errors.Join(err, raw.Close())
		}
		if f.raw, in, regular = raw, raw, info.Mode().IsRegular(); regular {
			f.Size = info.Size()
		}
	}
	f.count = &counter{r: in}
	f.begin = bufio.NewReaderSize(f.count, headBytes)
	head, err := f.begin.Peek(headBytes)
	if err != nil && err != io.EOF {
		return nil, errors.Join(fmt.Errorf("read %s: %w", name, err), f.Close())
	}
	sum := sha256.Sum256(head)
	f.Head = hex.EncodeToString(sum[:])
	if err := f.unpack(head); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", name, err), f.Close())
	}
	f.seekable = regular && f.r == f.begin
	return f, nil
}

// unpack finds out how the file is packed.
func (f *File) unpack(head []byte) (err error) {
	var unpacked io.Reader
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		unpacked, err = gzip.NewReader(f.begin)
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		var z *zstd.Decoder
		z, err = zstd.NewReader(f.begin, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			unpacked, f.close = z, z.Close
		}
	default:
		f.r = f.begin
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	f.r = bufio.NewReaderSize(unpacked, headBytes)
	return nil
}

// peek returns the beginning of the unpacked bytes, before any of them is read.
func (f *File) peek() ([]byte, error) {
	head, err := f.r.Peek(4 << 10)
	switch {
	case err == io.EOF, err == nil:
		return head, nil
	case f.r != f.begin:
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil, err
}

// Read implements io.Reader. Packed bytes that cannot be unpacked are an ErrDamaged.
func (f *File) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && err != io.EOF && f.r != f.begin {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return n, err
}

// At returns how many bytes of the file as it is have been read, for progress.
func (f *File) At() int64 { return f.count.n - int64(f.begin.Buffered()) }

// Close closes the file, but not standard input.
func (f *File) Close() error {
	f.close()
	f.close = func() {}
	if f.raw == nil {
		return nil
	}
	raw := f.raw
	f.raw = nil
	return raw.Close()
}

// skip continues at an offset of the unpacked bytes. It seeks if it can; otherwise it reads what is before, of which
// read bytes have been read.
func (f *File) skip(r *bufio.Reader, read, offset int64) error {
	if f.seekable {
		if offset > f.Size {
			return errShorter
		}
		if _, err := f.raw.Seek(offset, io.SeekStart); err != nil {
			return err
		}
		f.count.n = offset
		f.begin.Reset(f.count)
		r.Reset(f)
		return nil
	}
	_, err := io.CopyN(io.Discard, r, offset-read)
	if err == io.EOF {
		return errShorter
	}
	return err
}

var errShorter = fmt.Errorf("%w: it ends before the position to continue at", ErrDamaged)
