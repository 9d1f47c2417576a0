package attach

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// protocol is the version of what a process and the owner of a folder say to each other: the hello, and Bigtable's API
// behind it. Add one if a program of the other version cannot work with this one.
const protocol = 1

const (
	helloTime  = 5 * time.Second
	helloBytes = 512 // more than any version's hello
	nonceBytes = 32
)

// hello is a line of JSON. The client sends a nonce. The owner answers with its own nonce, or why it refuses the
// client, and with the proof that it knows the folder's secret. The client sends its own proof. So neither tells a
// secret to a process that only has the other's address.
type hello struct {
	Protocol int    `json:"tidemark"`
	Nonce    []byte `json:"nonce,omitempty"`
	Proof    []byte `json:"proof,omitempty"`
	Refused  string `json:"refused,omitempty"`
}

// ErrRefused means that the owner does not let this process in.
var ErrRefused = errors.New("attach: refused")

var errProof = errors.New("the other process does not know the folder's secret")

func proof(secret []byte, role string, nonces ...[]byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(role))
	for _, n := range nonces {
		mac.Write(n)
	}
	return mac.Sum(nil)
}

func nonce() []byte {
	n := make([]byte, nonceBytes)
	_, _ = rand.Read(n) // never fails
	return n
}

func send(w io.Writer, h hello) error {
	h.Protocol = protocol
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// receive reads a line, and nothing behind it.
func receive(r io.Reader) (h hello, err error) {
	line := make([]byte, 0, helloBytes)
	for len(line) == 0 || line[len(line)-1] != '\n' {
		if len(line) == helloBytes {
			return h, fmt.Errorf("the other process does not say hello within %d bytes", helloBytes)
		}
		if _, err := io.ReadFull(r, line[len(line):len(line)+1]); err != nil {
			return h, err
		}
		line = line[:len(line)+1]
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return h, fmt.Errorf("the other process does not say hello: %w", err)
	}
	return h, nil
}

// greet is the client's part.
func greet(ctx context.Context, conn net.Conn, secret []byte) error {
	until := time.Now().Add(helloTime)
	if at, ok := ctx.Deadline(); ok && at.Before(until) {
		until = at
	}
	if err := conn.SetDeadline(until); err != nil {
		return err
	}
	mine := nonce()
	if err := send(conn, hello{Nonce: mine}); err != nil {
		return err
	}
	owner, err := receive(conn)
	switch {
	case err != nil:
		return err
	case owner.Protocol != protocol:
		return fmt.Errorf("%w: that program attaches by version %d, this one by version %d; build both with one version of Tidemark", ErrRefused, owner.Protocol, protocol)
	case owner.Refused != "":
		return fmt.Errorf("%w: %s", ErrRefused, owner.Refused)
	case !hmac.Equal(owner.Proof, proof(secret, "owner", mine, owner.Nonce)):
		return errProof
	}
	if err := send(conn, hello{Proof: proof(secret, "client", mine, owner.Nonce)}); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// answer is the owner's part. gRPC bounds its time. refused is why no client is let in; empty lets it in.
func answer(conn net.Conn, secret []byte, refused string) error {
	client, err := receive(conn)
	if err != nil {
		return err
	}
	mine := nonce()
	h := hello{Nonce: mine, Proof: proof(secret, "owner", client.Nonce, mine)}
	if refused != "" {
		h = hello{Refused: refused}
	}
	if err := send(conn, h); err != nil {
		return err
	}
	if refused != "" || client.Protocol != protocol {
		return fmt.Errorf("attach: a process of version %d is refused", client.Protocol)
	}
	reply, err := receive(conn)
	if err == nil && !hmac.Equal(reply.Proof, proof(secret, "client", client.Nonce, mine)) {
		err = errProof
	}
	return err
}
