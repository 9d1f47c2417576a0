//go:build unix

package attach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/tidemark-go/tidemark/internal/private"
)

// socketName is the socket in the folder. It outlives an owner that is killed; then nobody listens.
const socketName = "attach.sock"

// maxPath is the longest path, in bytes, that every system takes as the name of a socket.
const maxPath = 100

// listen makes the folder's socket. The caller has the folder's lock, so a socket that is there is left over. The
// folder has mode 0700, so nobody else reaches the socket before its own mode is set.
func listen(dir string) (lis net.Listener, secret []byte, err error) {
	name := filepath.Join(dir, socketName)
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	err = short(dir, func(dir string) error {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, socketName)})
		if err != nil {
			return err
		}
		l.SetUnlinkOnClose(false) // by a name that is gone
		lis = l
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if err := os.Chmod(name, private.FileMode); err != nil {
		return nil, nil, errors.Join(err, lis.Close())
	}
	return lis, nil, nil // who opens the socket may open the folder
}

// unlink removes what listen made.
func unlink(dir string) error { return os.Remove(filepath.Join(dir, socketName)) }

func dialOwner(ctx context.Context, dir string) (conn net.Conn, secret []byte, err error) {
	err = short(dir, func(dir string) (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, socketName))
		return err
	})
	return conn, nil, err
}

// short calls f with a path of the folder that is short enough: its own, or a link to it in a folder of this user that
// is gone afterwards.
func short(dir string, f func(dir string) error) error {
	if len(filepath.Join(dir, socketName)) <= maxPath {
		return f(dir)
	}
	own, err := os.MkdirTemp("", "tm") // mode 0700
	if err == nil && len(filepath.Join(own, "d", socketName)) > maxPath {
		_ = os.Remove(own)
		own, err = os.MkdirTemp("/tmp", "tm")
	}
	if err != nil {
		return fmt.Errorf("linking to a path that is too long for a socket: %w", err)
	}
	defer func() { _ = os.RemoveAll(own) }()
	link := filepath.Join(own, "d")
	if err := os.Symlink(dir, link); err != nil {
		return err
	}
	return f(link)
}
