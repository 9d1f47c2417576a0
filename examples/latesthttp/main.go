// Latesthttp is a service that returns the newest reading of each device of a site. Copy it, and replace Reading by
// your payload:
//
//	go run ./examples/latesthttp
//	curl -H 'X-Tenant: acme' http://127.0.0.1:8096/sites/berlin/latest
//
// It begins with three made-up readings of the tenant acme. The header stands for your authentication: see package
// tenant/httptenant.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tidemark-go/tidemark/codec"
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

var readings = tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[Reading](), tsdb.SchemaOptions{})

func main() {
	addr := flag.String("addr", "127.0.0.1:8096", "address to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	if err := run(ctx, *addr); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr string) (err error) {
	store, err := embedded.New(ctx, embedded.Options{}) // in a folder: embedded.Open; on Cloud Bigtable: tsdb.Open
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.Ensure(ctx, readings); err != nil {
		return err
	}
	acme := readings.For(store, tenant.MustParse("acme"))
	for device, temp := range map[string]float64{"roof-7": 21.5, "cellar-1": 12.25, "gate-3": 18} {
		if err := acme.Put(ctx, tsdb.NewEntity("berlin", device), time.Now(), Reading{temp}); err != nil {
			return err
		}
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /sites/{site}/latest", func(rw http.ResponseWriter, r *http.Request) {
		list, err := latest(r, store)
		if err != nil {
			errstatus.HTTP(err).Write(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		json.NewEncoder(rw).Encode(list)
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
	server := &http.Server{Handler: edge(mux), ReadTimeout: 30 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return server.Shutdown(context.WithoutCancel(ctx)) // waits for the requests under way
	}
}

// device is a device with its newest reading.
type device struct {
	Device string    `json:"device"`
	Time   time.Time `json:"time"`
	Reading
}

// latest returns the devices of the request's site, of the request's tenant.
func latest(r *http.Request, store *tsdb.Store) ([]device, error) {
	repo, err := readings.FromContext(r.Context(), store)
	if err != nil {
		return nil, err
	}
	list := []device{}
	for p, err := range repo.Under(tsdb.NewPrefix(r.PathValue("site"))).Latest(r.Context()) {
		if err != nil {
			return nil, err
		}
		list = append(list, device{Device: p.Entity.Parts()[1], Time: p.Time, Reading: p.Value})
	}
	return list, nil
}
