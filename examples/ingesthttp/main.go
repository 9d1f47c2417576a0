// Ingesthttp is a service that stores readings which devices send over HTTP. Copy it, and replace Reading by what your
// devices send:
//
//	go run ./examples/ingesthttp
//	curl -H 'X-Tenant: acme' -d "[{\"device\":\"roof-7\",\"time\":\"$(date -u +%FT%TZ)\",\"temp_c\":21.5}]" http://127.0.0.1:8095/readings
//
// A response of 204 means that all readings are in the journal, where they survive a crash. After any other response
// some may be: a client may repeat the request, since a point with the same device and time replaces the first. The
// header stands for your authentication: see package tenant/httptenant.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/httptenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/errstatus"
)

// Reading is the payload of a point.
type Reading struct {
	TempC float64 `json:"temp_c"`
}

var readings = tsdb.MustDefine("readings", tsdb.Key("device"), codec.JSON[Reading](), tsdb.SchemaOptions{
	Retention: gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)},
	MaxFuture: time.Hour, // a device whose clock is wrong cannot stay the newest for years
})

func main() {
	addr := flag.String("addr", "127.0.0.1:8095", "address to listen on")
	dir := flag.String("dir", "tidemark-ingesthttp", "folder of the store and of the journal")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	if err := run(ctx, *addr, *dir); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr, dir string) (err error) {
	store, err := embedded.Open(ctx, filepath.Join(dir, "store")) // on Cloud Bigtable: tsdb.Open
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.Ensure(ctx, readings); err != nil {
		return err
	}
	w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: filepath.Join(dir, "journal")}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close(context.WithoutCancel(ctx))) }() // delivers what is in the journal

	mux := http.NewServeMux()
	mux.HandleFunc("POST /readings", func(rw http.ResponseWriter, r *http.Request) {
		err := accept(r, store, w)
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			http.Error(rw, fmt.Sprintf("at most %d bytes", large.Limit), http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			errstatus.HTTP(err).Write(rw, r)
			return
		}
		rw.WriteHeader(http.StatusNoContent)
	})
	edge, err := httptenant.New(tenant.FromHeader("X-Tenant"), httptenant.Options{})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	server := &http.Server{Handler: edge(http.MaxBytesHandler(mux, 1<<20)), ReadTimeout: 30 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return server.Shutdown(context.WithoutCancel(ctx)) // waits for the requests under way
	}
}

// accept puts the readings of a request's body into the writer's journal.
func accept(r *http.Request, store *tsdb.Store, w *tsdb.Writer) error {
	var body []struct {
		Device string    `json:"device"`
		Time   time.Time `json:"time"`
		Reading
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields() // or a field with a wrong name is 0
	if err := d.Decode(&body); err != nil {
		return fmt.Errorf("%w: the body: %w", tsdb.ErrInvalid, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%w: the body goes on after its list", tsdb.ErrInvalid)
	}
	var points []tsdb.Point[Reading]
	for _, b := range body {
		points = append(points, tsdb.Point[Reading]{Entity: tsdb.NewEntity(b.Device), Time: b.Time, Value: b.Reading})
	}
	repo, err := readings.FromContext(r.Context(), store) // of the request's tenant
	if err != nil {
		return err
	}
	_, err = repo.Via(w).EnqueueMany(r.Context(), points)
	return err
}
