//go:build unix

package embedded_test

import (
	"net"
	"testing"
)

func listenUnix(t *testing.T, name string) *net.UnixListener {
	t.Helper()
	lis, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return lis
}
