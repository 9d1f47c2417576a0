package zstd

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	kzstd "github.com/klauspost/compress/zstd"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/layout"
)

const (
	// Suffix is appended to the tag of the inner codec.
	Suffix = "+zstd"

	defaultMaxSize = 16 << 20
	defaultLevel   = 1
)

// Options configure [Wrap]. The zero value means the documented defaults.
type Options struct {
	// MaxSize is the largest payload before compression, in bytes. A larger one is neither written nor read, whatever
	// its compressed size. Zero means 16 MiB. If you lower it, larger stored payloads can no longer be
	// read.
	MaxSize int

	// Level is the compression level on the scale of the zstd program, 1 to 22; this package has four distinct
	// levels. Zero means 1. Most payloads have a few hundred bytes. For them, higher levels gain almost
	// nothing and cost memory: each encoder in use holds about 0.5 MiB at level 1 and tens of MiB at level 22. Level
	// does not affect reads.
	Level int
}

func (o Options) maxSize() int {
	if o.MaxSize == 0 {
		return defaultMaxSize
	}
	return o.MaxSize
}

func (o Options) level() int {
	if o.Level == 0 {
		return defaultLevel
	}
	return o.Level
}

// Wrap returns a codec that compresses each payload of c separately. For each tag of c, it reads that tag with
// [Suffix]. It does not read uncompressed payloads of c. To read both, put both codecs into a [codec.Fallback], the
// one to write first.
//
// [codec.Check] rejects options out of range, a tag that the suffix makes too long, and an invalid c.
//
// A payload that is damaged, or larger than MaxSize when decompressed, is [codec.ErrCorrupt]; one that is too large
// to write is [codec.ErrEncode]. A write allocates the payload and the allocations of c; a read allocates the
// decompressed payload and the allocations of c. There is nothing to close: no goroutine runs, and the garbage
// collector frees idle encoders. The codec is safe for concurrent use, and calls do not wait for each other.
func Wrap[T any](c codec.Codec[T], opts Options) codec.Codec[T] {
	out := &wrapped[T]{inner: c, frames: frames{max: opts.maxSize(), level: kzstd.EncoderLevelFromZstd(opts.level())}}
	switch {
	case c == nil:
		out.err = invalid.New(codecerr.ErrInvalid, "codec", "nil", "a codec")
		return out
	case opts.MaxSize < 0:
		out.err = invalid.New(codecerr.ErrInvalid, "MaxSize", strconv.Itoa(opts.MaxSize), "a number of bytes above 0")
	case opts.Level < 0 || opts.Level > 22:
		out.err = invalid.New(codecerr.ErrInvalid, "Level", strconv.Itoa(opts.Level), "1 to 22")
	}
	out.tag = c.Tag() + Suffix
	return out
}

type wrapped[T any] struct {
	inner   codec.Codec[T]
	tag     string
	err     error
	frames  frames
	scratch sync.Pool // of *scratch
}

// scratch has the temporary buffers of a write: the payload before and after compression. The result is copied from
// packed, because the compressor allocates room for as many bytes as its input has, and a payload may wait in a
// writer's buffer for a long time.
type scratch struct{ plain, packed []byte }

// maxScratch is the most bytes that a write keeps for the next one.
const maxScratch = 1 << 20

func (c *wrapped[T]) Tag() string { return c.tag }

// Check returns the errors that Wrap could not return.
func (c *wrapped[T]) Check() error {
	if c.err != nil {
		return c.err
	}
	return codec.Check(c.inner)
}

// Readers lists the compressed form of each format of the inner codec.
func (c *wrapped[T]) Readers() []codec.Reader[T] {
	if c.err != nil {
		return nil
	}
	readers := codec.Readers(c.inner)
	for i, r := range readers {
		tag := r.Tag + Suffix
		readers[i] = codec.Reader[T]{Tag: tag, Decode: func(src []byte) (T, error) {
			return read(&c.frames, tag, src, r.Decode)
		}}
		if r.Number != nil {
			readers[i].Number = func(name string) func([]byte) (codec.Value, error) {
				number := r.Number(name)
				return func(src []byte) (codec.Value, error) { return read(&c.frames, tag, src, number) }
			}
		}
	}
	return readers
}

// Layouts says which fields payloads have before compression. Package tsdb calls it.
func (c *wrapped[T]) Layouts() map[string]layout.Of[T] {
	if c.err != nil {
		return nil
	}
	out, of := make(map[string]layout.Of[T]), layout.ByTag[T](c.inner)
	for _, r := range codec.Readers(c.inner) {
		l, known := of[r.Tag]
		if !known || l.Unpack != nil { // one field, or compressed twice
			continue
		}
		if l.Unpack = c.frames.decompress; l.Decode == nil {
			l.Decode = r.Decode
		}
		out[r.Tag+Suffix] = l
	}
	return out
}

func (c *wrapped[T]) Append(dst []byte, v T) ([]byte, error) {
	if c.err != nil {
		return dst, codecerr.NewEncode(c.tag, c.err)
	}
	s, ok := c.scratch.Get().(*scratch)
	if !ok {
		s = new(scratch)
	}
	err := c.pack(s, v)
	if err == nil {
		dst = append(dst, s.packed...)
	}
	if cap(s.plain)+cap(s.packed) <= maxScratch {
		c.scratch.Put(s)
	}
	if err != nil {
		return dst, codecerr.NewEncode(c.tag, err)
	}
	return dst, nil
}

func (c *wrapped[T]) pack(s *scratch, v T) (err error) {
	if s.plain, err = codec.Append(c.inner, s.plain[:0], v); err != nil {
		return err
	}
	s.packed, err = c.frames.compress(s.packed[:0], s.plain)
	return err
}

func (c *wrapped[T]) Decode(src []byte) (T, error) {
	if c.err != nil {
		var zero T
		return zero, codecerr.NewCorrupt(c.tag, src, c.err)
	}
	return read(&c.frames, c.tag, src, c.inner.Decode)
}

// read returns what a function reads from a payload before compression.
func read[V any](f *frames, tag string, src []byte, of func([]byte) (V, error)) (V, error) {
	// The decompressed bytes are never reused, so a codec that wrongly retains them never sees other data.
	plain, err := f.decompress(src)
	if err == nil {
		var v V
		if v, err = of(plain); err == nil {
			return v, nil
		}
	}
	var zero V
	return zero, codecerr.NewCorrupt(tag, src, err)
}

var (
	errFrame = errors.New("not a zstd frame that declares its size")
	errSize  = errors.New("the size differs from the one that the frame declares")
)

// errTooLarge says which limit a payload exceeds.
func errTooLarge(size uint64, limit int) error {
	return fmt.Errorf("payload of %d bytes before compression; want %d at most", size, limit)
}
