package main

import (
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc/encoding"
)

// grpcWindow bounds the window of a gRPC message in zstd, and so the memory of a decoder next to the message itself.
// OpenTelemetry's collector uses half of it.
const grpcWindow = 1 << 20

func init() { encoding.RegisterCompressor(&grpcZstd{}) }

// grpcZstd lets gRPC clients compress with zstd. A response has the encoding of its request.
type grpcZstd struct{ encoders sync.Pool }

// Name implements encoding.Compressor.
func (*grpcZstd) Name() string { return "zstd" }

// Decompress implements encoding.Compressor. gRPC reads no more than the largest message.
func (*grpcZstd) Decompress(r io.Reader) (io.Reader, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxMessageBytes), zstd.WithDecoderMaxWindow(grpcWindow))
}

// Compress implements encoding.Compressor.
func (c *grpcZstd) Compress(w io.Writer) (io.WriteCloser, error) {
	if z, ok := c.encoders.Get().(*grpcEncoder); ok {
		z.Reset(w)
		return z, nil
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(grpcWindow))
	return &grpcEncoder{z, &c.encoders}, err
}

// grpcEncoder goes back to its pool once it is closed.
type grpcEncoder struct {
	*zstd.Encoder
	pool *sync.Pool
}

func (e *grpcEncoder) Close() error {
	err := e.Encoder.Close()
	e.pool.Put(e)
	return err
}
