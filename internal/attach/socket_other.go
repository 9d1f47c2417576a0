//go:build !unix && !windows

package attach

import (
	"context"
	"errors"
	"net"
)

func listen(string) (net.Listener, []byte, error) { return nil, nil, errors.ErrUnsupported }

func unlink(string) error { return nil }

func dialOwner(context.Context, string) (net.Conn, []byte, error) {
	return nil, nil, errors.ErrUnsupported
}
