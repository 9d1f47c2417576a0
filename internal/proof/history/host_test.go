package history

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/internal/proof/faultdisk"
)

// host runs the engine.
type host interface {
	// open starts the engine on what its disk holds.
	open() (*grpc.ClientConn, error)
	// fail takes the engine down without a warning. Its clients get no answers any more.
	fail()
	// collect removes the cells that need not be kept.
	collect(ctx context.Context) error
	// close ends the engine.
	close() error
}

// here is an engine in this process. When it fails, its disk loses part of what was not synced, or all of it.
type here struct {
	plan
	rnd    *rand.Rand
	disk   *faultdisk.Disk
	server *local.Server
}

// syncTime is how long a slow sync takes.
const syncTime = 20 * time.Millisecond

func (h *here) open() (conn *grpc.ClientConn, err error) {
	if h.disk == nil {
		h.disk = faultdisk.New()
	}
	if h.server, err = local.Open(engine.Options{FS: h.disk, Weak: h.weak, GCInterval: -1}); err != nil {
		return nil, err
	}
	if h.slowSync {
		h.disk.Slow(syncTime)
	}
	return h.server.Dial()
}

func (h *here) fail() {
	left := h.disk.Lose([]int{0, 50, 100}[h.rnd.IntN(3)], h.rnd)
	h.disk.Slow(0)
	_ = h.server.Close()
	h.disk = left
}

func (h *here) collect(ctx context.Context) error { return h.server.Collect(ctx) }

func (h *here) close() error {
	h.disk.Slow(0)
	return h.server.Close()
}

// there is an engine in a process of its own, over TCP or at the socket of its folder. When it fails, the process is
// killed.
type there struct {
	weak   bool
	attach bool
	dir    string
	cmd    *exec.Cmd
	in     io.Closer
}

const (
	serveDir    = "TIDEMARK_HISTORY_SERVES"
	serveWeak   = "TIDEMARK_HISTORY_WEAK"
	serveAttach = "TIDEMARK_HISTORY_ATTACH"
)

// serve is the other process. It serves a folder until its input ends.
func serve(dir string) error {
	s, err := local.Open(engine.Options{Dir: dir, Weak: os.Getenv(serveWeak) != "", GCInterval: -1})
	if err != nil {
		return err
	}
	if os.Getenv(serveAttach) != "" {
		if err := s.Share(dir); err != nil {
			return err
		}
		fmt.Println("serves the folder")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return s.Close()
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := grpc.NewServer()
	s.Register(srv)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the test closes it, also when it is killed
		srv.Stop()
	}()
	fmt.Println("serves", lis.Addr())
	if err := srv.Serve(lis); err != nil {
		return err
	}
	return s.Close()
}

func (h *there) open() (*grpc.ClientConn, error) {
	h.cmd = exec.Command(os.Args[0])
	h.cmd.Env = append(os.Environ(), serveDir+"="+h.dir)
	if h.weak {
		h.cmd.Env = append(h.cmd.Env, serveWeak+"=1")
	}
	if h.attach {
		h.cmd.Env = append(h.cmd.Env, serveAttach+"=1")
	}
	h.cmd.Stderr = os.Stderr
	in, err := h.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	h.in = in
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "serves ")
	if !ok {
		return nil, fmt.Errorf("the engine's process prints %q: %w", line, err)
	}
	if h.attach {
		return nil, nil // the stores have connections of their own, which find the owner again
	}
	return grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

func (h *there) fail() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

// collect does nothing: the other process has no call for it.
func (h *there) collect(context.Context) error { return nil }

func (h *there) close() error {
	_ = h.in.Close()
	return h.cmd.Wait()
}
