package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/devices"
	"github.com/tidemark-go/tidemark/tsdb"
)

// TestDevices: an instant query shows each number, and each true and false, of devices' messages under the key of its
// point.
func TestDevices(t *testing.T) {
	cases, now := devices.Cases(t), time.Now()
	var datasets []tsdb.Dataset
	for _, c := range cases {
		datasets = append(datasets, c.Schema(t))
	}
	s := mappedOver(t, someLimits, datasets...)
	numbers := 0
	for _, c := range cases {
		schema := c.Schema(t)
		for _, p := range c.Put(t, s.store, acme, now) {
			var matchers []string
			for i, name := range schema.KeyFields() {
				matchers = append(matchers, fmt.Sprintf("%s=%q", plainName(name), p.Entity.Parts()[i]))
			}
			for name, v := range p.Value.All() {
				want, ok := drawn(v)
				if !ok {
					continue
				}
				numbers++
				query := fmt.Sprintf("%s_%s{%s}", plainName(schema.Name()), plainName(name), strings.Join(matchers, ","))
				status, body := s.get("query", "query", query, "time", fmt.Sprint(p.Time.Unix()+1))
				var got struct {
					Data struct {
						Result []struct{ Value [2]any }
					}
				}
				if err := json.Unmarshal([]byte(body), &got); status != http.StatusOK || err != nil || len(got.Data.Result) != 1 {
					t.Errorf("%s: %s: %d %v %.300s, want one series", c.Name, query, status, err, body)
					continue
				}
				if x, err := strconv.ParseFloat(got.Data.Result[0].Value[1].(string), 64); err != nil || x != want {
					t.Errorf("%s: %s is %v, want %v", c.Name, query, got.Data.Result[0].Value[1], want)
				}
			}
		}
	}
	t.Logf("%d numbers", numbers)
}

// drawn returns the number that PromQL has for a value.
func drawn(v codec.Value) (float64, bool) {
	if on, ok := v.Bool(); ok {
		if on {
			return 1, true
		}
		return 0, true
	}
	return v.Number()
}

var quoted = regexp.MustCompile(`[^A-Za-z0-9_]`)

// plainName is a name as README.md says that it is shown.
func plainName(name string) string { return quoted.ReplaceAllString(name, "_") }
