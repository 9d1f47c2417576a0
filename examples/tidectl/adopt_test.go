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

	"github.com/tidemark-go/tidemark/tsdb/adopt"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// TestAdopt drafts a mapping of a foreign table, checks it, copies the table, catches up, and verifies.
func TestAdopt(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	server, err := embedded.NewServer(embedded.Options{Dir: file("data")})
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(err)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	ok(err)
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, lis) }()
	defer func() {
		stop()
		ok(<-served)
	}()
	t.Setenv("BIGTABLE_EMULATOR_HOST", lis.Addr().String())
	opts, err := foreignOptions()
	ok(err)
	client, err := bigtable.NewClientWithConfig(ctx, embedded.Project, embedded.Instance, bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, opts...)
	ok(err)
	defer client.Close()
	adminOpts, err := foreignOptions()
	ok(err)
	admin, err := bigtable.NewAdminClient(ctx, embedded.Project, embedded.Instance, adminOpts...)
	ok(err)
	defer admin.Close()
	ok(admin.CreateTableFromConf(ctx, &bigtable.TableConf{TableID: "telemetry", Families: map[string]bigtable.GCPolicy{"m": bigtable.NoGcPolicy()}}))
	table := client.OpenTable("telemetry")
	put := func(key, column, value string) {
		t.Helper()
		m := bigtable.NewMutation()
		m.Set("m", column, bigtable.ServerTime, []byte(value))
		ok(table.Apply(ctx, key, m))
	}
	began := time.Now().UTC().Truncate(time.Minute)
	for i := range 50 {
		put(fmt.Sprintf("pump-%d#%d", i%5, began.Add(time.Duration(-i)*time.Minute).UnixMilli()), "bar", fmt.Sprint(i))
	}
	tool := func(code int, want string, args ...string) string {
		t.Helper()
		out, _, err := tidectl(t, ctx, "", append([]string{"--project", embedded.Project, "--instance", embedded.Instance, "--table", "tidemark", "adopt"}, args...)...)
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
