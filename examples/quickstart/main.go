// Quickstart samples this machine as devices of two tenants, and then reads back what it wrote:
//
//	go run ./examples/quickstart    # keeps its points in ./tidemark-data; run it twice
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"os/signal"
	"runtime"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/mem"
	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// Reading is the value of a point: how much of a device is in use, and its total.
type Reading struct {
	Used  float64 `json:"used"`
	Total float64 `json:"total"`
	Unit  string  `json:"unit"`
}

// readings has the dataset's name, key fields, encoding and retention: reads do not show older points.
var readings = tsdb.MustDefine("readings", tsdb.Key("host", "device"), codec.JSON[Reading](), tsdb.SchemaOptions{
	Retention: gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)},
})

// measure returns what this system reports of itself.
func measure() map[string]Reading {
	cores, gib, found := float64(runtime.NumCPU()), float64(1<<30), map[string]Reading{}
	if busy, err := cpu.Percent(0, false); err == nil && len(busy) > 0 { // since the last call
		found["cpu"] = Reading{busy[0] / 100 * cores, cores, "cores"}
	}
	if m, err := mem.VirtualMemory(); err == nil {
		found["memory"] = Reading{float64(m.Used) / gib, float64(m.Total) / gib, "GiB"}
	}
	if l, err := load.Avg(); err == nil {
		found["load"] = Reading{l.Load1, cores, "cores"}
	}
	if d, err := disk.Usage("."); err == nil {
		found["disk"] = Reading{float64(d.Used) / gib, float64(d.Total) / gib, "GiB"}
	}
	return found
}

// device is measured for a tenant. One tenant's name begins like the other's, and still neither sees the other's rows.
type device struct{ tenant, name string }

var devices = []device{{"acme", "cpu"}, {"acme", "memory"}, {"acme2", "load"}, {"acme2", "disk"}}

// in returns a repository, which sees only the tenant's rows, and an entity.
func (d device) in(store *tsdb.Store) (*tsdb.Repository[Reading], tsdb.Entity) {
	host, _ := os.Hostname()
	return readings.For(store, tenant.MustParse(d.tenant)), tsdb.NewEntity(host, d.name)
}

func main() {
	cloud := flag.Bool("cloud", false, "store the points in the table of TIDEMARK_PROJECT, TIDEMARK_INSTANCE and TIDEMARK_TABLE")
	dir := flag.String("dir", "./tidemark-data", "store the points in this `folder`, created if missing")
	length := flag.Duration("for", 5*time.Second, "how long to sample")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program
	var store *tsdb.Store
	config, err := tsdb.ConfigFromEnv()
	if flag.NArg() > 0 || *length <= 0 || *dir == "" || *cloud && *dir != flag.Lookup("dir").DefValue {
		err = errors.New("want no arguments, -for above 0, and a folder in -dir unless -cloud is given")
	} else if !*cloud {
		store, err = embedded.Open(ctx, *dir)
	} else if err == nil {
		store, err = tsdb.Open(ctx, config)
	}
	if err == nil {
		err = errors.Join(run(ctx, os.Stdout, store, *length, measure), store.Close())
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, store *tsdb.Store, length time.Duration, measure func() map[string]Reading) error {
	if err := store.Ensure(ctx, readings); err != nil { // creates what is missing, and refuses a table that differs
		return err
	}
	fmt.Fprintf(out, "Sampling for %v; Ctrl-C ends it sooner\n", length)
	for n := 0; n == 0 || n < int(length.Seconds()*4) && ctx.Err() == nil; n++ {
		now, found := time.Now(), measure()
		for _, d := range devices {
			repo, entity := d.in(store)
			if r, ok := found[d.name]; ok {
				if err := repo.Put(context.WithoutCancel(ctx), entity, now, r); err != nil {
					return err
				}
			}
		}
		time.Sleep(250 * time.Millisecond)
	}
	return show(context.WithoutCancel(ctx), out, store) // Ctrl-C ends the sampling, not the program
}

func show(ctx context.Context, out io.Writer, store *tsdb.Store) error {
	fmt.Fprintln(out, "\nLatest: the newest point of each device")
	for _, d := range devices {
		repo, entity := d.in(store)
		if p, err := repo.Latest(ctx, entity); err != nil {
			fmt.Fprintf(out, "  %-6s %-7s %v\n", d.tenant, d.name, err)
		} else {
			fmt.Fprintf(out, "  %-6s %-7s %s  %7.2f of %7.2f %-5s %4.0f %%\n", d.tenant, d.name, p.Time.Local().Format("15:04:05.000"), p.Value.Used, p.Value.Total, p.Value.Unit, 100*p.Value.Used/p.Value.Total)
		}
	}
	fmt.Fprintln(out, "\nRange: every point, also of earlier runs")
	for _, d := range devices {
		repo, entity := d.in(store)
		n, sum, low, high := 0, 0.0, math.Inf(1), 0.0
		for p, err := range repo.Range(ctx, entity, tsdb.AllTime()) {
			if err != nil {
				return err
			}
			n, sum, low, high = n+1, sum+p.Value.Used, min(low, p.Value.Used), max(high, p.Value.Used)
		}
		if n > 0 {
			fmt.Fprintf(out, "  %-6s %-7s %5d points   min %7.2f   mean %7.2f   max %7.2f\n", d.tenant, d.name, n, low, sum/float64(n), high)
		}
	}
	fmt.Fprintln(out, "\nErrNotFound: what each tenant sees of the other's devices")
	for i, d := range devices {
		other := devices[(i+2)%len(devices)]
		repo, _ := d.in(store)
		_, entity := other.in(store)
		if _, err := repo.Latest(ctx, entity); !errors.Is(err, tsdb.ErrNotFound) {
			return fmt.Errorf("%s sees the %s of %s: %v", d.tenant, other.name, other.tenant, err)
		}
		fmt.Fprintf(out, "  %-6s asks for %-7s %v\n", d.tenant, other.name, tsdb.ErrNotFound)
	}
	return nil
}
