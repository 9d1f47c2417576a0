package tour

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// direct stores messages without a broker, by the same routes as the bridge.
type direct struct {
	routes   *inbound.Routes
	datasets *inbound.Datasets
	sink     inbound.Sink
	stored   atomic.Uint64
}

func newDirect(ctx context.Context, store *tsdb.Store, routes *inbound.Routes, journal tsdb.JournalOptions, log *slog.Logger) (*direct, error) {
	datasets, err := inbound.NewDatasets(ctx, store, routes.Keys(), inbound.Options{Schemas: []*tsdb.Schema[codec.Record]{telemetry}, Log: log})
	if err != nil {
		return nil, err
	}
	w, err := store.NewWriter(tsdb.WriterOptions{Journal: journal})
	if err != nil {
		return nil, err
	}
	return &direct{routes: routes, datasets: datasets, sink: inbound.Sink{Store: store, Writer: w}}, nil
}

// publish stores a message, and returns when its points are in the journal.
func (d *direct) publish(ctx context.Context, topic string, body []byte) error {
	route, names := d.routes.Match(topic)
	if route == nil {
		return fmt.Errorf("no route matches the topic %s", topic)
	}
	in := inbound.Message{Names: names, Payload: body, Arrived: time.Now()}
	id, err := route.Tenant(in, tenant.ID{})
	if err != nil {
		return err
	}
	ctx = tenant.NewContext(ctx, id)
	events, err := route.Events(ctx, d.datasets, id, in)
	if err != nil {
		return err
	}
	outcomes := make(chan error, len(events))
	for _, e := range events {
		d.sink.Enqueue(ctx, id, e.Point, func(out tsdb.Outcome) { outcomes <- out.Err })
	}
	for range events {
		err = errors.Join(err, <-outcomes)
	}
	if err == nil {
		d.stored.Add(1)
	}
	return err
}

// run waits for the end of ctx, and closes the writer.
func (d *direct) run(ctx context.Context) error {
	<-ctx.Done()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), leftover)
	defer cancel()
	return d.sink.Writer.Close(bounded)
}
