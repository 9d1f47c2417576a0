package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/devices"
)

// TestDevices posts the messages of devices, with the topic as the path. With the routes that devices.md shows to
// users, all are stored.
func TestDevices(t *testing.T) {
	cases := devices.Cases(t)
	routes := filepath.Join(t.TempDir(), "routes.txt")
	if err := os.WriteFile(routes, []byte(devices.Lines(cases)), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, ample, "-routes", routes)
	to := r.listen(t) + jsonPath
	since := time.Now()
	for _, c := range cases {
		path := (&url.URL{Path: c.Topic}).EscapedPath()
		if got := sendJSON(t, to+path, string(c.Payload)); got.status != http.StatusOK || got.RefusedCount != 0 {
			t.Errorf("%s: %d %s", c.Name, got.status, got.text)
		}
		c.CheckStored(t, r.in.sink.Store, acme, since)
	}
}
