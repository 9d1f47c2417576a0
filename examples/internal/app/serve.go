package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Serve answers requests until ctx ends, and then waits for running ones for the time drain. It serves HTTPS if srv has
// a TLSConfig. When ctx ends, it first calls stopping, which may be nil, with a context that ends after drain.
func Serve(ctx context.Context, srv *http.Server, lis net.Listener, drain time.Duration, stdout io.Writer, stopping func(context.Context)) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		if stopping != nil {
			stopping(bounded)
		}
		fmt.Fprintln(stdout, "Stopping  requests under way may finish; Ctrl-C again ends at once")
		stopped <- srv.Shutdown(bounded)
	})
	serve := srv.Serve
	if srv.TLSConfig != nil {
		serve = func(lis net.Listener) error { return srv.ServeTLS(lis, "", "") }
	}
	err := serve(lis)
	if stop() { // the server ended without Ctrl-C
		return fmt.Errorf("serve: %w", err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("some requests took longer than %v after Ctrl-C and got no response: %w", drain, errors.Join(err, srv.Close()))
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
