package conformance

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/engine/inproc"
)

func init() {
	backends = append(backends, backend{name: "inproc", dial: dialInProcess}, backend{name: "tcp", dial: dialTCP})
}

// openEngine opens an engine in memory whose garbage is collected only on demand.
func openEngine(t testing.TB, c *clock) *engine.Engine {
	t.Helper()
	eng, err := engine.Open(engine.Options{Clock: c.now, Steady: c.steady, GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	return eng
}

func closeEngine(t testing.TB, eng *engine.Engine) {
	if err := eng.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func dialInProcess(t testing.TB, c *clock) server {
	eng := openEngine(t, c)
	s := serverOf(t, eng)
	disconnect := s.stop
	s.stop = func() {
		disconnect()
		closeEngine(t, eng)
	}
	return s
}

// serverOf connects to an engine in process. stop does not close the engine.
func serverOf(t testing.TB, eng *engine.Engine) server {
	t.Helper()
	conn, err := inproc.Dial(eng)
	if err != nil {
		t.Fatal(err)
	}
	return server{conn: conn, collect: func() error { return eng.RunGC(context.Background()) }, stop: func() { conn.Close() }}
}

func dialTCP(t testing.TB, c *clock) server {
	eng := openEngine(t, c)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	eng.Register(srv)
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(lis)
	}()
	conn := dialAt(t, lis.Addr().String(), nil)
	return server{conn: conn, collect: func() error { return eng.RunGC(context.Background()) }, stop: func() {
		conn.Close()
		srv.Stop()
		<-done
		closeEngine(t, eng)
	}}
}
