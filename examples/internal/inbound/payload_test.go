package inbound

import (
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestHostilePayloads: a payload takes memory in proportion to its bytes, whatever its form.
func TestHostilePayloads(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	ds := declare(t, store, "d=k")
	rs, err := ParseRoutes(strings.NewReader("# one route\n+/# dataset=d key=k time=t,ms merge tenant=acme"))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := rs.Match("x")
	const most = 1 << 20
	long := strings.Repeat("x", most/8)
	for name, payload := range map[string]string{
		"a long name before many": `{"k":"a","t":1,"` + long + `":{` + many(`"#":1`, most/20) + `}}`,
		"long names before many":  `{"k":"a","t":1,"` + long[:250] + `":{"` + long[:250] + `":{` + many(`"#":1`, most/20) + `}}}`,
		"many fields":             `{"k":"a","t":1,` + many(`"#":1`, most/20) + `}`,
		"many objects":            `[` + many(`{"k":"a","t":#}`, most/20) + `]`,
		"many arrays":             strings.Repeat("[", most),
		"many numbers":            `[` + many(`#`, most/10) + `]`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		events, err := r.Events(t.Context(), ds, acme, Message{Payload: []byte(payload), Arrived: time.Now()})
		runtime.ReadMemStats(&after)
		if _, refused := errors.AsType[*Error](err); !refused || len(events) > 0 || len(err.Error()) > 1024 {
			t.Errorf("%s: %d events and the error %.100v, want a final one that is short", name, len(events), err)
		}
		if n := int(after.TotalAlloc - before.TotalAlloc); n > 100*len(payload) {
			t.Errorf("%s: %d bytes of memory for %d bytes", name, n, len(payload))
		}
	}
}

// many joins n texts, with numbers in the place of #.
func many(text string, n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(text, "#", strconv.Itoa(i))
	}
	return strings.Join(parts, ",")
}
