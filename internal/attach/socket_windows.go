package attach

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/tidemark-go/tidemark/internal/private"
)

// addressName is the file in the folder with the owner's address and the secret. It outlives an owner that is killed;
// then nobody who listens knows the secret.
const addressName = "attach.address"

// listen listens on the loopback interface. The caller has the folder's lock.
func listen(dir string) (net.Listener, []byte, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	secret := nonce()
	text := fmt.Appendf(nil, "%s %x\n", lis.Addr(), secret)
	name := filepath.Join(dir, addressName)
	err = os.WriteFile(name+".new", text, private.FileMode)
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		_ = lis.Close()
		return nil, nil, err
	}
	return lis, secret, nil
}

// unlink removes what listen made.
func unlink(dir string) error { return os.Remove(filepath.Join(dir, addressName)) }

func dialOwner(ctx context.Context, dir string) (net.Conn, []byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, addressName))
	if err != nil {
		return nil, nil, err
	}
	addr, code, ok := bytes.Cut(bytes.TrimSpace(text), []byte(" "))
	secret, err := hex.DecodeString(string(code))
	if !ok || err != nil || len(secret) != nonceBytes {
		return nil, nil, fmt.Errorf("%s is damaged", addressName)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", string(addr))
	return conn, secret, err
}
