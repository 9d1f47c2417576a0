package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/examples/internal/heatview"
)

// The paths of the metrics and of the heatmap.
const (
	path        = "/metrics"
	heatmapPath = "/heatmap"
)

// serve listens on the address, and returns what collects metrics on request.
func (out *Outlet) serve(ctx context.Context, addr string, log *slog.Logger) (metric.Reader, error) {
	registry := prometheus.NewRegistry()
	// The exporter's default depends on a global of another package, and the dashboard needs these names.
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(),
		exporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err != nil {
		return nil, fmt.Errorf("-metrics-addr: %w", err)
	}
	if out.lis, err = new(net.ListenConfig).Listen(ctx, "tcp", addr); err != nil {
		return nil, fmt.Errorf("cannot listen on %s; choose another address with -metrics-addr: %w", addr, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+path, promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError, // report the other metrics
		MaxRequestsInFlight: 4,
	}))
	if out.keys != nil {
		mux.Handle("GET "+heatmapPath, heatview.Handler(out.keys))
	}
	var handler http.Handler = mux
	if a, ok := out.lis.Addr().(*net.TCPAddr); ok && a.IP.IsLoopback() {
		handler = edge.LocalHost(mux)
	}
	out.srv = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return reader, nil
}

// listen serves until the outlet is closed.
func (out *Outlet) listen(log *slog.Logger) {
	defer close(out.served)
	if err := out.srv.Serve(out.lis); !errors.Is(err, http.ErrServerClosed) {
		log.Error("metrics are not shown any more", "error", err)
	}
}

// end waits for a running request.
func (out *Outlet) end(ctx context.Context) {
	if out.served == nil { // it never began
		_ = out.lis.Close()
		return
	}
	if err := out.srv.Shutdown(ctx); err != nil {
		_ = out.srv.Close()
	}
	<-out.served
}
