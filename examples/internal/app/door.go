package app

import (
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
)

// Door is where a server listens, whose tokens it takes, and how long it takes to stop.
type Door struct {
	Addr   string
	Remote bool // other machines may reach the address, without encryption
	Tokens edge.Tokens
	Drain  time.Duration

	tokens string // a file
}

// Flags adds the flags of a Door with its usual address and time to stop.
func (d *Door) Flags(flags *flag.FlagSet, addr string, drain time.Duration) {
	flags.StringVar(&d.Addr, "addr", addr, "listen on this `host:port`; port 0 chooses a free one")
	flags.BoolVar(&d.Remote, "allow-remote", false, "listen on addresses that other machines reach, without encryption")
	flags.Func("token", "the tenant of a token, as `token=tenant`; may be repeated", d.Tokens.Add)
	flags.StringVar(&d.tokens, "tokens", "",
		"a `file` with sha256:DIGEST=tenant on each line, the digest as \"printf %s TOKEN | sha256sum\" prints it; better than -token, which other users of this machine see")
	flags.DurationVar(&d.Drain, "drain", drain, "how long requests in progress may take after Ctrl-C")
}

// Check checks the flags, and reads the file of tokens.
func (d *Door) Check(given map[string]bool) error {
	if d.Drain <= 0 {
		return fmt.Errorf("-drain is %v; want above 0", d.Drain)
	}
	if given["tokens"] {
		if err := d.Tokens.ReadFile(d.tokens); err != nil {
			return fmt.Errorf("-tokens: %w", err)
		}
	}
	return CheckAddr("addr", d.Addr, d.Remote)
}

// AddDemo adds the token of made-up data, which everybody knows: only programs of this machine may use it.
func (d *Door) AddDemo(token, tenant string) error {
	if err := d.Tokens.Add(token + "=" + tenant); err != nil {
		return fmt.Errorf("-demo: its token %s: %w", token, err)
	}
	if err := CheckAddr("addr", d.Addr, d.Remote); err != nil {
		return err
	}
	if host, _, _ := net.SplitHostPort(d.Addr); !edge.Loopback(host) {
		return fmt.Errorf("-demo lets everybody in who knows the token %q, and -addr %s can be reached from other machines", token, d.Addr)
	}
	return nil
}

// Bounds are those of requests.
type Bounds struct {
	Body     int64 // bytes
	Requests int   // under way
	Timeout  time.Duration
}

// Flags adds the flags of Bounds, whose values are the usual ones.
func (b *Bounds) Flags(flags *flag.FlagSet) {
	flags.Int64Var(&b.Body, "max-body", b.Body, "the most `bytes` in the body of a request, compressed and decompressed")
	flags.IntVar(&b.Requests, "max-requests", b.Requests, "how many requests may be under way; others get 503 with Retry-After")
	flags.DurationVar(&b.Timeout, "timeout", b.Timeout, "how long a request may take")
}

// Check checks the flags.
func (b *Bounds) Check() error {
	switch {
	case b.Body < 1:
		return fmt.Errorf("-max-body is %d; want above 0", b.Body)
	case b.Requests < 1 || b.Requests > 10_000:
		return fmt.Errorf("-max-requests is %d; want 1 to 10000", b.Requests)
	case b.Timeout <= 0:
		return fmt.Errorf("-timeout is %v; want above 0", b.Timeout)
	}
	return nil
}

// NewServer returns an HTTP server with timeouts for everything that a client can delay: read for a request, and write
// from its headers to the end of the response, 0 for any time.
func NewServer(h http.Handler, read, write time.Duration, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       read,
		WriteTimeout:      write,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
