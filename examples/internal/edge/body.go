package edge

import (
	"errors"
	"io"
	"net"

	"github.com/tidemark-go/tidemark/tenant"
)

// ErrNoRoom is returned by ReadBody if the bodies being read leave no memory for more of this tenant's.
var ErrNoRoom = errors.New("too many bytes of requests at once")

// chunk is the number of bytes that are read, and taken from the shares, in one step.
const chunk = 64 << 10

// ReadBody reads a whole body into memory first, so that a slow client holds nothing but the bytes that it has sent. It
// takes each chunk from the tenant's share of bytes. Always call release, which returns them. The error is a read error
// or ErrNoRoom.
func ReadBody(r io.Reader, id tenant.ID, bytes *Shares) (body io.Reader, release func(), err error) {
	var parts net.Buffers
	taken := int64(0)
	release = func() { bytes.Return(id, taken) }
	for {
		if !bytes.Take(id, chunk) {
			return nil, release, ErrNoRoom
		}
		taken += chunk
		part := make([]byte, 0, chunk)
		for len(part) < chunk && err == nil {
			n := 0
			n, err = r.Read(part[len(part):chunk])
			part = part[:len(part)+n]
		}
		parts = append(parts, part)
		if err == io.EOF {
			return &parts, release, nil
		}
		if err != nil {
			return nil, release, err
		}
	}
}

// ReadAll reads a whole body into one slice, as ReadBody does. Always call release, once the slice is no longer used.
func ReadAll(r io.Reader, id tenant.ID, bytes *Shares) (body []byte, release func(), err error) {
	taken := int64(0)
	release = func() { bytes.Return(id, taken) }
	for err == nil {
		if len(body) == cap(body) {
			grown := max(chunk, 2*cap(body))
			if !bytes.Take(id, int64(grown)) { // while it is copied, both are in memory
				return nil, release, ErrNoRoom
			}
			taken += int64(grown)
			body = append(make([]byte, 0, grown), body...)
		}
		var n int
		n, err = r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
	}
	if err != io.EOF {
		return nil, release, err
	}
	return body, release, nil
}
