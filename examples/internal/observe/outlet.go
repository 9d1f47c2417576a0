package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
)

// exit is the time that the end of the program may take to send the rest.
const exit = 3 * time.Second

// Outlet exports a program's telemetry. Close it after the store.
type Outlet struct {
	// Telemetry is for the store.
	Telemetry tsdb.Telemetry
	// DialOptions are for the store's connection. They are empty without -heatmap.
	DialOptions []grpc.DialOption

	exit   time.Duration
	faults *faults
	keys   *heatmap.Recorder // nil without -heatmap
	lis    net.Listener      // nil without Prometheus
	srv    *http.Server
	served chan struct{}
	spans  *trace.TracerProvider // nil without OTLP
	giveUp func()                // ends the sending of spans
	meters *metric.MeterProvider // nil without Prometheus and OTLP
	otlp   string
}

// Open starts the telemetry of a program. Service is its name; log gets the faults of the store and of the telemetry
// itself. The program's own readers get the metrics, too. Check the options first. The error names the flag.
func Open(ctx context.Context, service string, o Options, log *slog.Logger, own ...metric.Reader) (_ *Outlet, err error) {
	out := &Outlet{
		exit: exit,
		Telemetry: tsdb.Telemetry{
			TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(),
			Logger: log, IncludeErrorText: o.details, Tenants: o.tenants,
		},
		faults: watchFaults(log),
	}
	defer func() {
		if err != nil {
			out.Close()
		}
	}()
	what, err := resourceOf(ctx, service)
	if err != nil {
		return nil, err
	}
	if o.heatmap {
		if out.keys, err = heatmap.NewRecorder(heatmap.Options{}); err != nil {
			return nil, err
		}
		out.DialOptions = out.keys.DialOptions()
	}
	readers := []metric.Option{metric.WithResource(what)}
	for _, reader := range own {
		readers = append(readers, metric.WithReader(reader))
	}
	if o.metrics != "" {
		reader, err := out.serve(ctx, o.metrics, log)
		if err != nil {
			return nil, err
		}
		readers = append(readers, metric.WithReader(reader))
	}
	if o.otlp != "" {
		reader, err := out.send(ctx, o.otlp, what)
		if err != nil {
			return nil, err
		}
		readers = append(readers, metric.WithReader(reader))
		out.otlp = o.otlp
		out.Telemetry.TracerProvider = out.spans
	}
	if len(readers) > 1 {
		out.meters = metric.NewMeterProvider(readers...)
		out.Telemetry.MeterProvider = out.meters
	}
	if out.srv != nil { // only once there is something to show
		out.served = make(chan struct{})
		go out.listen(log)
	}
	return out, nil
}

// resourceOf describes this program. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
func resourceOf(ctx context.Context, service string) (*resource.Resource, error) {
	r, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName(service), semconv.ServiceVersion(version())),
		resource.WithFromEnv(),
	)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return r, nil
}

// version is the version of the program's module, or the commit that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "devel"
}

// Keys is the recorder of -heatmap, or nil without it.
func (out *Outlet) Keys() *heatmap.Recorder { return out.keys }

// Print prints where the telemetry is sent.
func (out *Outlet) Print(to io.Writer) {
	if out.lis != nil {
		fmt.Fprintf(to, "Metrics   http://%s%s\n", out.lis.Addr(), path)
	}
	if out.keys != nil {
		fmt.Fprintf(to, "Heatmap   http://%s%s\n", out.lis.Addr(), heatmapPath)
	}
	if out.otlp != "" {
		fmt.Fprintf(to, "OTLP      to %s\n", out.otlp)
	}
}

// Close sends the rest, for at most three seconds, and stops the telemetry. It logs what it cannot send; that is not a
// failure of the program.
func (out *Outlet) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), out.exit)
	defer cancel()
	var ends sync.WaitGroup
	if out.spans != nil {
		ends.Go(func() {
			defer context.AfterFunc(ctx, out.giveUp)()
			if err := out.spans.Shutdown(context.WithoutCancel(ctx)); err != nil {
				out.faults.Handle(fmt.Errorf("the last traces: %w", err))
			}
			out.giveUp()
		})
	}
	if out.meters != nil {
		ends.Go(func() {
			if err := out.meters.Shutdown(ctx); err != nil && !errors.Is(err, metric.ErrReaderShutdown) {
				out.faults.Handle(fmt.Errorf("the last metrics: %w", err))
			}
		})
	}
	ends.Wait()
	if out.srv != nil {
		out.end(ctx)
	}
	out.faults.close()
}
