package adopt_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/adopt"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
)

var d90 = gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)}

const oddMapping = `
table: odd
dataset: {name: odd, retention: d90=maxage=90d, precision: ms}
key: {separator: "#", parts: [tenant, device, time]}
time: {unit: us, width: 16}
value: {column: "d:json", as: json}
`

// TestUnfit has a row for each reason: a check counts it, a copy refuses it, and with skip leaves exactly it out.
func TestUnfit(t *testing.T) {
	good := fmt.Sprintf("%016d", at(0).UnixMicro())
	cases := []struct {
		reason, key string
		cells       map[string]string
		left        int64 // points of the row that fit all the same
	}{
		{reason: "keys", key: "acme#device"},
		{reason: "times", key: "acme#device#" + good + "#more"},
		{reason: "tenants", key: "a!b#device#" + good},
		{reason: "tenants", key: strings.Repeat("a", 65) + "#device#" + good},
		{reason: "entities", key: "acme##" + good},
		{reason: "entities", key: "acme#\xff\xfe#" + good},
		{reason: "entities", key: "acme#" + strings.Repeat("\x01", 1500) + "#" + good},
		{reason: "times", key: "acme#device#123"},
		{reason: "times", key: "acme#device#99999999x9999999"},
		{reason: "times", key: "acme#device#" + fmt.Sprintf("%016d", at(0).UnixMicro()+1)}, // finer than a millisecond
		{reason: "values", key: "acme#device#" + good, cells: map[string]string{"d:json": "{"}},
		{reason: "values", key: "acme#device#" + good, cells: map[string]string{}},
		{reason: "columns", key: "acme#device#" + good, cells: map[string]string{"d:json": "1", "m:x": "2"}, left: 1},
		{reason: "versions", key: "acme#device#" + good, cells: map[string]string{"d:json": "1", "again:": "2"}, left: 1},
		{reason: "payloads", key: "acme#device#" + good, cells: map[string]string{"d:json": `"` + strings.Repeat("x", 110<<10) + `"`}},
		{reason: "expired", key: "acme#device#" + fmt.Sprintf("%016d", at(0).Add(-61*24*time.Hour).UnixMicro())},
	}
	for i, c := range cases {
		t.Run(fmt.Sprint(c.reason, i), func(t *testing.T) {
			w := newWorld(t)
			if c.reason == "payloads" { // the payloads of a head share 10 MiB
				w.ok(w.store.Ensure(t.Context(), tsdb.MustDefine("odd", tsdb.Key("device"), codec.JSON[any](), tsdb.SchemaOptions{
					Retention: d90, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 100},
				})))
			}
			table := w.create("odd")
			set := func(key string, cells map[string]string) {
				m := bigtable.NewMutation()
				for column, value := range cells {
					if column == "again:" {
						m.Set("d", "json", 1000, []byte(value))
						continue
					}
					m.Set(column[:1], column[2:], 2000, []byte(value))
				}
				w.ok(table.Apply(t.Context(), key, m))
			}
			set("acme#fits#"+good, map[string]string{"d:json": "1"})
			switch {
			case c.cells == nil:
				set(c.key, map[string]string{"d:json": "1"})
			case len(c.cells) == 0:
				c.reason = "columns" // of which there is one instead
				set(c.key, map[string]string{"m:x": "1"})
			default:
				set(c.key, c.cells)
			}
			open := func(skip string) *adopt.Source {
				m, err := adopt.Parse([]byte(oddMapping + skip))
				w.ok(err)
				s, err := adopt.Open(table, m)
				w.ok(err)
				return s
			}
			s := open("")
			report, err := s.Check(t.Context(), w.store, adopt.CheckOptions{})
			w.ok(err)
			if !report.Refused() || report.Points != 1+c.left || report.Unfit[len(report.Unfit)-1].Reason != c.reason && report.Unfit[0].Reason != c.reason {
				t.Fatalf("Check = %+v, want one unfit for the reason %s, and %d points", report, c.reason, 1+c.left)
			}
			if x := report.Unfit[0].Examples; len(x) == 0 || x[0].Key == "" || x[0].Text == "" {
				t.Errorf("Check gives the examples %v, want one with key and text", x)
			}
			_, err = s.Copy(t.Context(), w.store, adopt.CopyOptions{})
			u, ok := errors.AsType[*adopt.Unfit](err)
			if !errors.Is(err, adopt.ErrUnfit) || !ok {
				t.Fatalf("Copy = %v, want ErrUnfit", err)
			}
			s = open("skip: [" + c.reason + ", values]\n")
			state, err := s.Copy(t.Context(), w.store, adopt.CopyOptions{})
			w.ok(err)
			if state.Skipped[u.Reason] != 1 || state.Points != 1+c.left {
				t.Errorf("Copy with skip: skipped %v, wrote %d points; want 1 for the reason %s, and %d", state.Skipped, state.Points, u.Reason, 1+c.left)
			}
			v, err := s.Verify(t.Context(), w.store, adopt.VerifyOptions{})
			w.ok(err)
			if !v.Same() || v.Stored != 1+c.left {
				t.Errorf("Verify = %+v, want %d equal points", v, 1+c.left)
			}
		})
	}
}
