package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
)

// TestHeatmap: recordings of two processes are drawn, searched and merged.
func TestHeatmap(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	var files []string
	for n := range 2 {
		recorder, err := heatmap.NewRecorder(heatmap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		store, err := embedded.New(ctx, embedded.Options{DialOptions: recorder.DialOptions()})
		if err != nil {
			t.Fatal(err)
		}
		schema := tsdb.MustDefine("readings", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{})
		if err := store.Ensure(ctx, schema); err != nil {
			t.Fatal(err)
		}
		var points []tsdb.Point[float64]
		for i := range 100 {
			points = append(points, tsdb.Point[float64]{Entity: tsdb.NewEntity(fmt.Sprintf("device-%d-%d", n, i)), Time: time.Now(), Value: 1})
		}
		if _, err := schema.For(store, tenant.MustParse("acme")).PutMany(ctx, points); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Join(dir, fmt.Sprintf("%d.heat", n)))
		if err := recorder.Recording().Save(files[n]); err != nil {
			t.Fatal(err)
		}
	}
	text := func(want []string, args ...string) {
		t.Helper()
		out, _, err := tidectl(t, ctx, "", args...)
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%q prints\n%s\nwant %q in it", args, out, w)
			}
		}
	}
	text([]string{"0 findings"}, append([]string{"heatmap", "find"}, files...)...)
	text([]string{"[]"}, "-o", "json", "heatmap", "find", files[0])
	html, all, merged := filepath.Join(dir, "h.html"), filepath.Join(dir, "all.html"), filepath.Join(dir, "all.heat")
	text(nil, append([]string{"heatmap", "show", "--html", html}, files...)...)
	text(nil, "heatmap", "merge", "--out", merged, files[0], files[1])
	text(nil, "heatmap", "show", "--html", all, merged)
	text([]string{"acme readings device-0-", "▓▓▓", " writes", "UTC; a block is"}, "heatmap", "show", merged)
	text([]string{"\nacme "}, "heatmap", "show", "--by", "tenant", merged)
	if page, err := os.ReadFile(html); err != nil || !strings.Contains(string(page), "device-0-") || !strings.Contains(string(page), "device-1-") {
		t.Errorf("the page lacks keys of a recording: %v", err)
	}
	for name, begins := range map[string]string{html: "<!DOCTYPE html>", all: "<!DOCTYPE html>", merged: "TIDEHEAT"} {
		file, err := os.ReadFile(name)
		info, _ := os.Stat(name)
		if err != nil || !strings.HasPrefix(string(file), begins) || info.Mode().Perm() != 0o600 || !strings.Contains(string(file), "device-0") {
			t.Errorf("%s: %v, mode %v, begins with %.20q", name, err, info.Mode(), file)
		}
	}
	if err := os.WriteFile(html, []byte("<html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		code int
	}{
		{[]string{"heatmap", "show", "--html", html}, exitUsage},
		{[]string{"heatmap", "show", "--by", "colour", files[0]}, exitUsage},
		{[]string{"heatmap", "show"}, exitUsage},
		{[]string{"heatmap", "merge", files[0]}, exitUsage},
		{[]string{"heatmap", "find", html}, exitDamaged},
		{[]string{"heatmap", "find", "missing"}, exitFailed},
		{[]string{"heatmap", "find", "--detailed-exitcode", hot(t, dir)}, exitChanges},
	} {
		if _, _, err := tidectl(t, ctx, "", test.args...); exitCode(err) != test.code {
			t.Errorf("%q ends with %d (%v), want %d", test.args, exitCode(err), err, test.code)
		}
	}
}

// hot records a row of 10 MiB, and returns the file.
func hot(t *testing.T, dir string) string {
	t.Helper()
	recorder, err := heatmap.NewRecorder(heatmap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := embedded.New(context.Background(), embedded.Options{DialOptions: recorder.DialOptions()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	schema := tsdb.MustDefine("blobs", tsdb.Key("name"), codec.Bytes(), tsdb.SchemaOptions{})
	if err := store.Ensure(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	if err := schema.For(store, tenant.MustParse("acme")).Put(t.Context(), tsdb.NewEntity("map"), time.Now(), make([]byte, 10<<20)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "hot.heat")
	if err := recorder.Recording().Save(name); err != nil {
		t.Fatal(err)
	}
	return name
}
