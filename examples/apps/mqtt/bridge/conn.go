package bridge

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
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
	on bool       // whether the broker's first packet has been read
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

// errOldBroker is the error of a broker that refuses MQTT 5.
var errOldBroker = errors.New("the broker speaks MQTT 3.1.1 or older, and this service needs MQTT 5: use the broker's webhooks, or let mosquitto bridge its topics")

// Read refuses a broker whose first packet is a CONNACK of MQTT 3.1.1 with the code 1, unacceptable protocol version.
// The client would report a malformed packet.
func (c *conn) Read(p []byte) (int, error) {
	if !c.on {
		first, _ := c.r.Peek(4)
		if c.on = true; len(first) == 4 && first[0] == 0x20 && first[1] == 2 && first[3] == 1 {
			return 0, errOldBroker
		}
	}
	return c.r.Read(p)
}

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
