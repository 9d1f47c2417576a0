package attach

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// TestCheckpointEndsWithItsClient: the owner keeps a checkpoint until the client releases it, or is gone.
func TestCheckpointEndsWithItsClient(t *testing.T) {
	f := new(fake)
	dir, _ := serve(t, f)
	dial := func() *grpc.ClientConn {
		conn, err := Conn(func(ctx context.Context) (net.Conn, error) { return Dial(ctx, dir) })
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	await := func(want int64) {
		t.Helper()
		for until := time.Now().Add(10 * time.Second); f.copies.Load() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("there are %d checkpoints, want %d", f.copies.Load(), want)
			}
		}
	}
	conn := dial()
	defer conn.Close()
	at, release, err := Checkpoint(t.Context(), conn, "folder")
	if err != nil || at != filepath.Join("folder", "somewhere") || f.copies.Load() != 1 {
		t.Fatalf("got %q, %v, and %d checkpoints", at, err, f.copies.Load())
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := Checkpoint(short, conn, "folder"); err == nil {
		t.Error("there are two checkpoints at a time")
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	await(0)
	other := dial()
	if _, _, err := Checkpoint(t.Context(), other, "folder"); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	await(0)
}
