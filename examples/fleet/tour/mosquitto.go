package tour

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// mosquitto is a process of the broker mosquitto, with its files in a temporary folder.
type mosquitto struct {
	addr, dir string
	cmd       *exec.Cmd
	said      output
	ended     chan struct{}
}

// Packages install mosquitto in a folder that is not in the PATH of every user.
var mosquittoPlaces = []string{"/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto", "/opt/homebrew/sbin/mosquitto"}

// findMosquitto returns the path of the program, or "" if it is not installed.
func findMosquitto() string {
	if path, err := exec.LookPath("mosquitto"); err == nil {
		return path
	}
	for _, path := range mosquittoPlaces {
		if _, err := exec.LookPath(path); err == nil {
			return path
		}
	}
	return ""
}

// settings are mosquitto's. It listens on this machine only, keeps nothing on disk, and drops no message.
const settings = `listener %s 127.0.0.1
allow_anonymous true
persistence false
max_queued_messages 100000
log_dest stderr
log_type error
log_type warning
`

// startMosquitto starts the program on a free port. Another process can take the port before mosquitto does, so it
// tries a few.
func startMosquitto(ctx context.Context, path string) (_ *mosquitto, err error) {
	dir, err := os.MkdirTemp("", "tidemark-fleet-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	for range 3 {
		m := &mosquitto{dir: dir, ended: make(chan struct{})}
		if err = m.start(ctx, path); err == nil {
			return m, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("start %s: %w; -broker none needs no other program", path, err)
}

func (m *mosquitto) start(ctx context.Context, path string) error {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	m.addr = lis.Addr().String()
	_ = lis.Close()
	_, port, _ := net.SplitHostPort(m.addr)
	file := filepath.Join(m.dir, "mosquitto.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, settings, port), 0o600); err != nil {
		return err
	}
	m.cmd = exec.Command(path, "-c", file)
	m.cmd.Dir = m.dir
	m.cmd.Stderr = &m.said
	separate(m.cmd)
	if err := m.cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer close(m.ended)
		_ = m.cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", m.addr)
		if err == nil {
			_ = conn.Close()
			return nil
		}
		select {
		case <-m.ended:
			return fmt.Errorf("it ended: %s", strings.TrimSpace(m.said.String()))
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("it does not listen on %s: %w", m.addr, err), m.end())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// How long mosquitto may take to start, and to end once it is asked to.
const (
	startWithin = 15 * time.Second
	endWithin   = 5 * time.Second
)

// URL is the address for clients.
func (m *mosquitto) URL() string { return "mqtt://" + m.addr }

// Close ends the process and removes its folder.
func (m *mosquitto) Close() error { return errors.Join(m.end(), os.RemoveAll(m.dir)) }

func (m *mosquitto) end() error {
	_ = m.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-m.ended:
		return nil
	case <-time.After(endWithin):
	}
	err := m.cmd.Process.Kill()
	<-m.ended
	return err
}

// output keeps the last that a process has written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const outputBytes = 4 << 10

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	if n := o.text.Len(); n > outputBytes {
		o.text.Next(n - outputBytes)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
