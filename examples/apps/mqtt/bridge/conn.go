package bridge

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"sync"
	"time"
)

// conn is the connection to the broker. The client reads byte by byte, and writes a packet in pieces between Lock and
// Unlock: so reads are buffered, and a packet is sent by Unlock.
type conn struct {
	net.Conn
	r  *bufio.Reader
	mu sync.Mutex // held while a packet is written
	w  *bufio.Writer

	gone context.Context // ends when the client closes the connection
	end  context.CancelFunc
}

const (
	connectTimeout = 10 * time.Second
	writeTimeout   = 10 * time.Second
	bufferBytes    = 64 << 10
)

// dial connects to the broker.
func (b *Bridge) dial(ctx context.Context, u *url.URL) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var raw net.Conn
	var err error
	if u.Scheme == schemeTLS {
		raw, err = (&tls.Dialer{Config: b.config.TLS}).DialContext(ctx, "tcp", u.Host)
	} else {
		raw, err = (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	}
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, r: bufio.NewReaderSize(raw, bufferBytes), w: bufio.NewWriterSize(raw, bufferBytes)}
	c.gone, c.end = context.WithCancel(context.Background())
	b.conn.Store(c)
	return c, nil
}

func (c *conn) Read(p []byte) (int, error) { return c.r.Read(p) }

func (c *conn) Write(p []byte) (int, error) { return c.w.Write(p) }

// Lock begins a packet.
func (c *conn) Lock() {
	c.mu.Lock()
	_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
}

// Unlock sends the packet. If that fails, it closes the connection, which the reader notices.
func (c *conn) Unlock() {
	defer c.mu.Unlock()
	if c.w.Flush() != nil {
		_ = c.Conn.Close()
	}
}

func (c *conn) Close() error {
	c.end()
	return c.Conn.Close()
}
