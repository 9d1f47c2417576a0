package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// Two events of one instant are put, printed, watched and exported, each with its ID.
func TestInspectEvents(t *testing.T) {
	events := tsdb.MustDefine("events", tsdb.Key("user"), codec.JSON[string](), tsdb.SchemaOptions{Identity: true})
	dir := filled(t, 1)
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	run := func(code int, args ...string) string {
		t.Helper()
		out, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir}, args...)...)
		want(t, code, err, strings.Join(args, " "))
		return out
	}
	for _, id := range []string{"b", "a"} {
		if out := run(0, "put", "--time", "2026-05-30", "--id", id, "--json", `"x"`, "events", "acme", "user=ada"); !strings.HasSuffix(out, "ID "+id+"\n") {
			t.Errorf("put prints %q, without the ID", out)
		}
	}
	run(exitFailed, "put", "--time", "2026-05-30", "--json", `"x"`, "events", "acme", "user=ada")
	if out, want := run(0, "get", "events", "acme", "user=ada"), "2026-05-30T00:00:00Z  a  ada  json  \"x\"\n2026-05-30T00:00:00Z  b  ada  json  \"x\"\n"; out != want {
		t.Errorf("get prints %q, want %q", out, want)
	}
	if out := run(0, "-o", "json", "latest", "events", "acme", "user=ada"); !strings.Contains(out, `"id":"a"`) {
		t.Errorf("latest prints %s", out)
	}
	if store, err = embedded.Open(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	v, err := dynamic.Open(t.Context(), store, tenant.MustParse("acme"), "events")
	if err != nil {
		t.Fatal(err)
	}
	ada := tsdb.NewEntity("ada")
	out := &lineCounter{each: make(chan struct{}, 10)}
	a := &app{form: "text"}
	a.std.out = out
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	at := time.Date(2026, 5, 30, 0, 0, 0, 0, time.UTC)
	go func() { ended <- a.follow(ctx, v, ada, tsdb.FollowOptions{Since: at.Add(-time.Second)}) }()
	printed := func() {
		t.Helper()
		select {
		case <-out.each:
		case err := <-ended:
			t.Fatalf("watch ends with %v", err)
		case <-time.After(time.Minute):
			t.Fatal("watch prints nothing for a minute")
		}
	}
	for range 2 { // a and b are stored already
		printed()
	}
	for _, id := range []string{"c", "d"} {
		if err := events.For(store, tenant.MustParse("acme")).WithID(id).Put(t.Context(), ada, at, "y"); err != nil {
			t.Fatal(err)
		}
		printed()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("watch ends with %v after Ctrl-C", err)
	}
	if want := "2026-05-30T00:00:00Z  c  ada  json  \"y\"\n2026-05-30T00:00:00Z  d  ada  json  \"y\"\n"; !strings.HasSuffix(out.text.String(), want) {
		t.Errorf("watch prints %q, want %q at the end", &out.text, want)
	}
	var table strings.Builder
	w, err := a.exported(unclosed{&table}, v, "csv", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`{"tidemark":"export"}`, `{"dataset":"events","entity":["ada"],"time":"2026-05-30T00:00:00Z","id":"a","class":"keep","tag":"json","json":"x"}`} {
		if _, err := w.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || !strings.HasSuffix(table.String(), "tag,id,value,more,payload\nada,2026-05-30T00:00:00Z,keep,json,a,x,,\n") {
		t.Errorf("CSV output: %q, %v", &table, err)
	}
}

// lineCounter collects lines, and reports each.
type lineCounter struct {
	text strings.Builder
	each chan struct{}
}

func (l *lineCounter) Write(p []byte) (int, error) {
	l.text.Write(p)
	for range strings.Count(string(p), "\n") {
		l.each <- struct{}{}
	}
	return len(p), nil
}
