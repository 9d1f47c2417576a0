package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/examples/internal/adopt"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// foreign is a table of another program, and a store, on an engine that is served.
type foreign struct {
	t     *testing.T
	dir   string
	table *bigtable.Table
}

func (f *foreign) ok(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *foreign) file(name string) string { return filepath.Join(f.dir, name) }

func newForeign(t *testing.T) *foreign {
	t.Helper()
	ctx := t.Context()
	f := &foreign{t: t, dir: t.TempDir()}
	server, err := embedded.NewServer(embedded.Options{Dir: f.file("data")})
	f.ok(err)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	f.ok(err)
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, lis) }()
	t.Cleanup(func() {
		stop()
		f.ok(<-served)
	})
	t.Setenv("BIGTABLE_EMULATOR_HOST", lis.Addr().String())
	opts, err := connection(tsdb.DialOptions()...)
	f.ok(err)
	client, err := bigtable.NewClientWithConfig(ctx, embedded.Project, embedded.Instance, bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, opts...)
	f.ok(err)
	t.Cleanup(func() { client.Close() })
	adminOpts, err := connection(tsdb.DialOptions()...)
	f.ok(err)
	admin, err := bigtable.NewAdminClient(ctx, embedded.Project, embedded.Instance, adminOpts...)
	f.ok(err)
	t.Cleanup(func() { admin.Close() })
	f.ok(admin.CreateTableFromConf(ctx, &bigtable.TableConf{TableID: "telemetry", Families: map[string]bigtable.GCPolicy{"m": bigtable.NoGcPolicy()}}))
	f.table = client.Open("telemetry")
	return f
}

func (f *foreign) put(key, column, value string) {
	f.t.Helper()
	m := bigtable.NewMutation()
	m.Set("m", column, bigtable.ServerTime, []byte(value))
	f.ok(f.table.Apply(f.t.Context(), key, m))
}

// adopt runs a command below tidectl adopt.
func (f *foreign) adopt(ctx context.Context, args ...string) (out string, err error) {
	f.t.Helper()
	out, _, err = tidectl(f.t, ctx, "", append([]string{"--project", embedded.Project, "--instance", embedded.Instance, "--table", "tidemark", "adopt"}, args...)...)
	return out, err
}

// TestAdopt drafts a mapping of a foreign table, checks it, copies the table, catches up, and verifies.
func TestAdopt(t *testing.T) {
	f := newForeign(t)
	ctx, put, file, ok := t.Context(), f.put, f.file, f.ok
	began := time.Now().UTC().Truncate(time.Minute)
	for i := range 50 {
		put(fmt.Sprintf("pump-%d#%d", i%5, began.Add(time.Duration(-i)*time.Minute).UnixMilli()), "bar", fmt.Sprint(i))
	}
	tool := func(code int, want string, args ...string) string {
		t.Helper()
		out, err := f.adopt(ctx, args...)
		text := out
		if err != nil {
			text += err.Error()
		}
		if exitCode(err) != code || !strings.Contains(text, want) {
			t.Fatalf("%q: exit code %d; it prints\n%s\nwant %d with %q", args, exitCode(err), text, code, want)
		}
		return out
	}
	draft := tool(0, "parts: [device, time]", "describe", "telemetry")
	mapping := strings.NewReplacer("change-me", "acme", "cells: unknown", "cells: written").Replace(draft)
	ok(os.WriteFile(file("map.yaml"), []byte(mapping), 0o600))
	tool(0, "50 of 5 entities of 1 tenants", "check", file("map.yaml"))
	tool(0, "50 points from 50 rows", "copy", "--state", file("state"), file("map.yaml"))
	put(fmt.Sprintf("pump-0#%d", began.Add(time.Minute).UnixMilli()), "bar", "51")
	tool(exitChanges, "missing", "verify", file("map.yaml"))
	tool(0, "Pass 2", "copy", "--state", file("state"), file("map.yaml"))
	out := tool(0, "", "-o", "json", "verify", file("map.yaml"))
	var v adopt.Verified
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.Stored != 51 || !v.Same() {
		t.Errorf("verify prints %s, %v; want 51 equal points", out, err)
	}

	put("pump-1#now", "bar", "52")
	tool(exitChanges, "Refused", "verify", file("map.yaml"))
	tool(exitChanges, `times: 1, a copy ends there`, "check", file("map.yaml"))
	tool(exitChanges, "tidectl adopt check counts all of them", "copy", "--state", file("state"), file("map.yaml"))
	ok(os.WriteFile(file("map2.yaml"), []byte(mapping+"skip: [times]\n"), 0o600))
	tool(exitFailed, "the state is of another copy", "copy", "--state", file("state"), file("map2.yaml"))
	tool(0, "times: 1", "copy", "--state", file("state2"), file("map2.yaml"))
	tool(0, "Skipped", "verify", file("map2.yaml"))

	ok(os.WriteFile(file("wrong.yaml"), []byte("table: [a]\n"), 0o600))
	tool(exitFailed, "line 1: this is a list", "check", file("wrong.yaml"))
	tool(exitUsage, "takes a mapping file", "check")
	tool(exitUsage, "takes a table", "describe")
	tool(exitUsage, "state", "copy", file("map.yaml"))
}

// TestAdoptFollow: with --follow a copy catches up again and again, until Ctrl-C. It then says how to continue, and
// does.
func TestAdoptFollow(t *testing.T) {
	f := newForeign(t)
	f.ok(os.WriteFile(f.file("map.yaml"), []byte(followed), 0o600))
	began := time.Now().UTC().Truncate(time.Minute)
	at := func(i int) string {
		return fmt.Sprintf("pump-%d#%d", i%5, began.Add(time.Duration(-i)*time.Minute).UnixMilli())
	}
	for i := range 20 {
		f.put(at(i), "bar", fmt.Sprint(i))
	}
	for _, every := range []string{"0s", "-1s"} {
		if _, err := f.adopt(t.Context(), "copy", "--state", f.file("state"), "--follow", every, f.file("map.yaml")); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "--follow") {
			t.Errorf("--follow %s: %v, want a refusal", every, err)
		}
	}
	run := func(until func(adopt.State) bool, meanwhile func()) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ended := make(chan error, 1)
		var out string
		go func() {
			var err error
			out, err = f.adopt(ctx, "copy", "--state", f.file("state"), "--follow", "20ms", f.file("map.yaml"))
			ended <- err
		}()
		state := func() adopt.State {
			s, err := readState(f.file("state"))
			if err != nil {
				t.Error(err)
			}
			return s
		}
		for state().Pass < 2 && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		meanwhile()
		for !until(state()) && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		if ctx.Err() != nil {
			t.Error("the copy did not get there within a minute")
		}
		cancel()
		if err := <-ended; exitCode(err) != exitInterrupted {
			t.Errorf("after Ctrl-C: %v, want the exit code %d\n%s", err, exitInterrupted, out)
		}
		if !strings.Contains(out, "Pass ") {
			t.Errorf("it prints %s, want its passes", out)
		}
	}
	var later int
	run(func(s adopt.State) bool { return s.Pass > later+1 && s.Complete() }, func() {
		f.put(at(20), "bar", "20")
		s, err := readState(f.file("state"))
		f.ok(err)
		later = s.Pass
	})
	if out, err := f.adopt(t.Context(), "verify", f.file("map.yaml")); err != nil || !strings.Contains(out, "21 points") {
		t.Errorf("after the first run: %v\n%s", err, out)
	}
	f.put(at(21), "bar", "21") // while nothing follows
	before, err := readState(f.file("state"))
	f.ok(err)
	run(func(s adopt.State) bool { return s.Pass > before.Pass+1 }, func() {})
	if out, err := f.adopt(t.Context(), "verify", f.file("map.yaml")); err != nil || !strings.Contains(out, "22 points") {
		t.Errorf("after the second run: %v\n%s", err, out)
	}

	// What no copy can write ends it: following does not hide it.
	f.put("pump-1#now", "bar", "x")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := f.adopt(ctx, "copy", "--state", f.file("state"), "--follow", "20ms", f.file("map.yaml")); exitCode(err) != exitChanges {
		t.Errorf("following a table with a row that does not fit: %v, want the exit code %d", err, exitChanges)
	}
}

const followed = `
table: telemetry
tenant: acme
dataset: {name: pressure}
key: {separator: "#", parts: [pump, time]}
time: {unit: ms, width: 13}
cells: written
value: {column: "m:bar", as: number}
`
