package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
)

var errEncoding = errors.New("the body's encoding is neither gzip nor zstd nor none")

// errGzip and errZstd are the errors of a body that is in another format than its header says.
var (
	errGzip = errors.New("the body is not in gzip format")
	errZstd = errors.New("the body is not in zstd format")
)

// unpacked returns the decompressed body. Reading it fails with an *http.MaxBytesError if it has more than -max-body
// bytes. Always call release, once the body is read. The error is edge.ErrNoRoom if there is no memory for it now.
func (s *server) unpacked(w http.ResponseWriter, r *http.Request, id tenant.ID, packed io.Reader) (body io.Reader, release func(), err error) {
	release = func() {}
	switch strings.ToLower(r.Header.Get("Content-Encoding")) {
	case "", "identity":
		return packed, release, nil
	case "gzip":
		z, err := gzip.NewReader(packed)
		if err != nil {
			return nil, release, fmt.Errorf("%w: %w", errGzip, err)
		}
		return http.MaxBytesReader(w, z, s.limits.Body), release, nil
	case "zstd":
		z, release, err := s.unzstd(id, packed)
		if err != nil {
			return nil, release, err
		}
		return http.MaxBytesReader(w, io.NopCloser(z), s.limits.Body), release, nil
	}
	return nil, release, errEncoding
}

// maxWindow is the largest window of a zstd body, as RFC 9659 says: a decoder takes that much memory at once.
const maxWindow = 8 << 20

// zstdBlock is the largest block of a zstd frame. A decoder has a few of them beside its window.
const zstdBlock = 128 << 10

// unzstd returns a decoder, and takes its memory from the tenant's share.
func (s *server) unzstd(id tenant.ID, packed io.Reader) (_ *zstd.Decoder, release func(), _ error) {
	release = func() {}
	in := bufio.NewReader(packed)
	start, err := in.Peek(zstd.HeaderMaxSize)
	var head zstd.Header
	if len(start) > 0 {
		err = head.Decode(start)
	}
	if err != nil {
		return nil, release, fmt.Errorf("%w: %w", errZstd, err)
	}
	window := head.WindowSize
	if head.SingleSegment {
		window = head.FrameContentSize
	}
	if most := uint64(min(maxWindow, s.limits.Body)); window > most {
		return nil, release, &windowError{window, most}
	}
	window = max(window, zstd.MinWindowSize)
	memory := int64(window + 4*min(window, zstdBlock))
	if !s.memory.Take(id, memory) {
		return nil, release, edge.ErrNoRoom
	}
	// Later frames may not have a larger window: the maximum is that of the first. Nothing runs beside the reads.
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(window), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		s.memory.Return(id, memory)
		return nil, release, fmt.Errorf("%w: %w", errZstd, err)
	}
	return z, func() {
		z.Close()
		s.memory.Return(id, memory)
	}, nil
}

// windowError is the error of a zstd body whose window is too large.
type windowError struct{ window, most uint64 }

func (e *windowError) Error() string {
	return fmt.Sprintf("the zstd frame has a window or a size of %d bytes, and %d is the most; compress with a smaller window", e.window, e.most)
}

// tooLarge returns the text of an error. If a body is too large, it names the limit and when it was exceeded.
func tooLarge(err error, when string) string {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Sprintf("the body has more than %d bytes%s, which is the limit of -max-body", large.Limit, when)
	}
	return err.Error()
}

// statusOf returns the status of an error of reading or decompressing a body.
func statusOf(err error) int {
	_, large := errors.AsType[*http.MaxBytesError](err)
	_, wide := errors.AsType[*windowError](err)
	switch {
	case large, wide:
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errEncoding):
		return http.StatusUnsupportedMediaType
	}
	return http.StatusBadRequest
}
