package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

const aDay = 24 * time.Hour

// stations stores points of three tenants in three datasets. One dataset had another class before.
func stations(t *testing.T) (dir string, all []tsdb.Dataset) {
	t.Helper()
	dir = t.TempDir()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	d90, d7 := gc.Class{Name: "d90", Policy: gc.MaxAge(90 * aDay)}, gc.Class{Name: "d7", Policy: gc.MaxAge(7 * aDay)}
	weather := tsdb.MustDefine("weather", tsdb.Key("site"), codec.Float64(), tsdb.SchemaOptions{Retention: gc.Class{Name: "d30", Policy: gc.MaxAge(30 * aDay)}})
	power := tsdb.MustDefine("power", tsdb.Key("meter"), codec.Float64(), tsdb.SchemaOptions{Retention: d90, FormerClasses: []gc.Class{d7}})
	notes := tsdb.MustDefine("notes", tsdb.Key("site"), codec.Float64(), tsdb.SchemaOptions{})
	all = []tsdb.Dataset{weather, power, notes}
	err = store.Ensure(t.Context(), all...)
	for _, id := range []string{"acme", "beta", "coast"} {
		for i := range 4 {
			for _, s := range []*tsdb.Schema[float64]{weather, power, notes} {
				e := tsdb.NewEntity(fmt.Sprint("place", i))
				err = errors.Join(err, s.For(store, tenant.MustParse(id)).Put(t.Context(), e, time.Now().Add(-time.Hour), float64(i)))
			}
		}
	}
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	return dir, all
}

// table calls f with the raw table of a folder.
func table(t *testing.T, dir string, f func(*bigtable.Table)) {
	t.Helper()
	server, err := embedded.NewServer(embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, lis) }()
	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	client, err := bigtable.NewClientWithConfig(ctx, embedded.Project, embedded.Instance, bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	f(client.Open("tidemark"))
	err = client.Close()
	cancel()
	if err := errors.Join(err, conn.Close(), <-served); err != nil && !strings.Contains(err.Error(), "closing") {
		t.Error(err)
	}
}

// rest returns the cells of all rows of tenants, except those of a dataset or a family.
func rest(t *testing.T, dir, dataset, family string) map[string]string {
	t.Helper()
	out := map[string]string{}
	table(t, dir, func(table *bigtable.Table) {
		err := table.ReadRows(t.Context(), bigtable.NewRange("-", "{"), func(row bigtable.Row) bool {
			for _, cells := range row {
				for _, c := range cells {
					if parts := strings.Split(row.Key(), "#"); parts[1] != dataset && !strings.HasPrefix(c.Column, family+":") {
						out[row.Key()] += fmt.Sprintf("%s@%d=%x ", c.Column, c.Timestamp, c.Value)
					}
				}
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	return out
}

// TestDatasets deletes a dataset and retires a class, in a table with three tenants. With -v it prints the transcript.
// All other data stays the same, byte for byte.
func TestDatasets(t *testing.T) {
	dir, all := stations(t)
	table(t, dir, func(table *bigtable.Table) { // an expired point that was written in d7
		key := fmt.Sprintf("acme#power#place0#%019d", int64(1<<63-1)-time.Now().Add(-9*aDay).UnixNano())
		mut := bigtable.NewMutation()
		mut.Set("d7", "p:f64", bigtable.Time(time.Now().Add(-9*aDay)), make([]byte, 8))
		if err := table.Apply(t.Context(), key, mut); err != nil {
			t.Fatal(err)
		}
	})
	before := rest(t, dir, "weather", "d7")
	if len(before) != 2*3*4 {
		t.Fatalf("%d rows", len(before))
	}
	cmd := func(code int, has string, args ...string) {
		t.Helper()
		out, remarks, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir, "datasets"}, args...)...)
		want(t, code, err, strings.Join(args, " ")+"\n"+remarks)
		text := out + remarks
		if err != nil {
			text += fmt.Sprintf("tidectl: %v\n", err)
		}
		t.Logf("$ tidectl datasets %s\n%s", strings.Join(args, " "), text)
		if !strings.Contains(text, has) {
			t.Errorf("%s lacks %q:\n%s", args, has, text)
		}
	}
	cmd(exitUsage, "", "remove", "weather")
	cmd(exitFailed, "not found", "plan", "--dataset", "wether")
	cmd(0, "tenant beta: 4", "plan", "--dataset", "weather")
	cmd(exitRefused, "not confirmed", "remove", "--dataset", "weather")
	cmd(0, "removed", "remove", "--dataset", "weather", "--by", "ops", "--yes")
	cmd(exitRefused, "New points are written in", "plan", "--dataset", "power", "--class", "d90")
	cmd(0, "is retired", "retire", "--dataset", "power", "--class", "d7")
	cmd(0, "families of d7", "plan", "--dataset", "power", "--class", "d7")
	cmd(0, "removed", "remove", "--dataset", "power", "--class", "d7", "--yes")
	cmd(0, "Families:     d7", "remove", "--class", "d7", "--yes")
	cmd(0, "Families:     d30", "remove", "--class", "d30", "--yes")
	if after := rest(t, dir, "", ""); !maps.Equal(before, after) {
		t.Errorf("the other data was\n%v\nand is\n%v", before, after)
	}
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(t.Context(), all[0]); !errors.Is(err, tenancy.ErrDatasetDeleted) {
		t.Errorf("Ensure of a deleted dataset: %v, want ErrDatasetDeleted", err)
	}
	if err := store.Ensure(t.Context(), all[1]); !errors.Is(err, tenancy.ErrSchemaConflict) {
		t.Errorf("Ensure with a removed class: %v, want ErrSchemaConflict", err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	cmd(0, "can be declared again", "release", "--dataset", "weather")
	cmd(0, "can be declared again", "release", "--dataset", "power", "--class", "d7")
	if store, err = embedded.Open(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.Ensure(t.Context(), all...), store.Close()); err != nil {
		t.Error(err)
	}
}

// TestDatasetsList: an operator sees what is stored without the programs that store it, and which entry is damaged.
func TestDatasetsList(t *testing.T) {
	dir, _ := stations(t)
	run := func(args ...string) (string, error) {
		out, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir}, args...)...)
		return out, err
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := run(args...)
		if err != nil {
			t.Fatal(args, err)
		}
		return out
	}
	got := must("datasets", "list")
	for _, want := range []string{"DATASET", "power    meter  ns         f64   d90 d7     -", "weather  site"} {
		if !strings.Contains(got, want) {
			t.Errorf("datasets list prints\n%s\nwant %q in it", got, want)
		}
	}
	if got := must("-o", "json", "datasets", "list"); strings.Count(got, "\n") != 3 || !strings.Contains(got, `{"name":"power","key":[{"name":"meter","kind":"text"}],`) {
		t.Errorf("datasets list -o json prints\n%s", got)
	}
	if got := must("datasets", "show", "--dataset", "power"); !strings.Contains(got, "Class d7   maxage=7d") {
		t.Errorf("datasets show prints\n%s", got)
	}
	if _, err := run("datasets", "show", "--dataset", "winds"); err == nil || !strings.Contains(err.Error(), `dataset "winds" is not in the catalogue`) {
		t.Errorf("a dataset that is not there: %v", err)
	}
	table(t, dir, func(of *bigtable.Table) {
		m := bigtable.NewMutation()
		m.Set("_sys", "json", 0, []byte("{"))
		if err := of.Apply(t.Context(), "!dataset#power", m); err != nil {
			t.Fatal(err)
		}
	})
	got, err := run("datasets", "list")
	if err == nil || !strings.Contains(err.Error(), "!dataset#power") || !strings.Contains(got, "weather") {
		t.Errorf("with a damaged entry it prints\n%s\nand %v", got, err)
	}
}
