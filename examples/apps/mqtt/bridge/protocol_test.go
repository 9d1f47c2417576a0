package bridge

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestOldBroker: a broker of MQTT 3.1.1 answers the connection of MQTT 5 with the return code 1, as section 3.1.2.2 of
// MQTT 3.1.1 says, and closes it. Run says so in one line.
func TestOldBroker(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	go func() {
		for {
			c, err := lis.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1024))
			_, _ = c.Write([]byte{0x20, 2, 0, 1})
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	b, err := New(t.Context(), store, routesOf(t, "a/+d dataset=d key=d time=arrival tenant=acme"), Config{Broker: "mqtt://" + lis.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "speaks MQTT 3.1.1 or older") || strings.Contains(err.Error(), "\n") {
		t.Errorf("Run = %v, want one line that says what the broker speaks", err)
	}
}
