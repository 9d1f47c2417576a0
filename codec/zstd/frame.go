package zstd

import (
	"errors"
	"sync"

	kzstd "github.com/klauspost/compress/zstd"
)

// frames compresses and decompresses zstd frames. Each call uses its own encoder or decoder in a mode that starts no
// goroutines. They are pooled, so that calls do not wait for each other and idle ones are garbage collected.
type frames struct {
	max      int
	level    kzstd.EncoderLevel
	encoders sync.Pool // of *kzstd.Encoder
	decoders sync.Pool // of *kzstd.Decoder
}

const (
	// window is the maximum distance of a match. It also bounds an encoder's memory.
	window = 1 << 20

	// maxRatio is the most bytes that one byte of a frame can represent: a block has at least 4 bytes and represents
	// at most 128 KiB. It prevents a short frame from causing a large allocation.
	maxRatio = 128 << 10 / 4
)

func (f *frames) compress(dst, plain []byte) ([]byte, error) {
	if len(plain) > f.max {
		return dst, errTooLarge(uint64(len(plain)), f.max)
	}
	enc, ok := f.encoders.Get().(*kzstd.Encoder)
	if !ok {
		var err error
		enc, err = kzstd.NewWriter(nil,
			kzstd.WithEncoderConcurrency(1),
			kzstd.WithEncoderLevel(f.level),
			kzstd.WithWindowSize(window),
			kzstd.WithZeroFrames(true),
			kzstd.WithSingleSegment(true), // without it, short frames do not declare their size
		)
		if err != nil {
			return dst, err
		}
	}
	out := enc.EncodeAll(plain, dst)
	f.encoders.Put(enc)
	return out, nil
}

func (f *frames) decompress(src []byte) ([]byte, error) {
	var head kzstd.Header
	if err := head.Decode(src); err != nil {
		return nil, errors.Join(errFrame, err)
	}
	size := head.FrameContentSize
	switch {
	case head.Skippable || !head.HasFCS:
		return nil, errFrame
	case size > uint64(f.max):
		return nil, errTooLarge(size, f.max)
	case size > uint64(len(src))*maxRatio:
		return nil, errSize
	}
	dec, ok := f.decoders.Get().(*kzstd.Decoder)
	if !ok {
		var err error
		dec, err = kzstd.NewReader(nil,
			kzstd.WithDecoderConcurrency(1),
			kzstd.WithDecoderMaxMemory(uint64(max(f.max, kzstd.MinWindowSize))),
		)
		if err != nil {
			return nil, err
		}
	}
	plain, err := dec.DecodeAll(src, nil)
	f.decoders.Put(dec)
	if err != nil {
		return nil, err
	}
	if uint64(len(plain)) != size {
		return nil, errSize
	}
	return plain, nil
}
