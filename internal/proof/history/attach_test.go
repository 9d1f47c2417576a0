package history

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/attach"
)

// attached is the connection of an attached process. For the owner, a process that is killed is a connection that ends.
type attached struct {
	dir string

	mu   sync.Mutex
	conn net.Conn
}

func (a *attached) open() (*grpc.ClientConn, error) { return attach.Conn(a.dial) }

func (a *attached) dial(ctx context.Context) (net.Conn, error) {
	conn, err := attach.Dial(ctx, a.dir)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conn = conn
	return conn, err
}

// kill ends the connection at any moment of its calls.
func (a *attached) kill() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn != nil {
		_ = a.conn.Close()
	}
}

// attachStores gives each store a connection to the owner of the folder.
func (w *world) attachStores(dir string) (conns []*grpc.ClientConn) {
	for range stores {
		a := &attached{dir: dir}
		conn, err := a.open()
		w.must(err)
		conns, w.guests = append(conns, conn), append(w.guests, a)
	}
	return conns
}
