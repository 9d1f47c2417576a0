package inbound_test

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

var (
	trucksFile = flag.String("trucks", "", "a gzip `file` of line protocol, with the tag name, to be stored on change")
	trucksBand = flag.String("trucks.onchange", "0.5,5m", "how it is stored on change")
)

// TestTrucks shows what storing on change does to a file of line protocol: rows, bytes, and the error of means over the
// whole time, with Hold and without.
func TestTrucks(t *testing.T) {
	if *trucksFile == "" {
		t.Skip("needs -trucks")
	}
	every := newRouted(t, "lines format=line key=name time=ns")
	changed := newRouted(t, "lines format=line key=name time=ns onchange="+*trucksBand)
	_, least, _ := strings.Cut(*trucksBand, ",")
	atLeast, err := time.ParseDuration(least)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*routed{every, changed} {
		lines, nameless := r.load(*trucksFile)
		fmt.Printf("%d lines are stored, %d without the tag name are not\n", lines, nameless)
		if err := r.sink.Writer.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"readings", "diagnostics"} {
		all, some := every.read(name, atLeast+10*time.Second), changed.read(name, atLeast+10*time.Second)
		fmt.Printf("%s: %d rows and %d bytes of keys and payloads, of %d and %d\n", name, some.rows, some.bytes, all.rows, all.bytes)
		for field := range all.means {
			var held, plain, integral, span, n float64
			for truck, want := range all.means[field] {
				got, ok := some.means[field][truck]
				if !ok {
					t.Errorf("%s of %s is gone", field, truck)
					continue
				}
				held, plain = max(held, math.Abs(got.TimeMean-want.TimeMean)), max(plain, math.Abs(got.Mean-want.TimeMean))
				integral = max(integral, math.Abs(got.Integral-want.Integral)/cmp.Or(math.Abs(want.Integral), 1))
				span, n = max(span, want.Max-want.Min), n+1
			}
			fmt.Printf("  %-26s largest error of %3.0f means: %.4g with Hold, %.4g without; of integrals with Hold %.3g %%; numbers span %.4g\n", field, n, held, plain, 100*integral, span)
		}
	}
}

// load stores the lines of a file with the tag name, 1,000 at a time. It returns how many have it, and how many do not.
func (r *routed) load(name string) (stored, nameless int) {
	file, err := os.Open(name)
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		r.t.Fatal(err)
	}
	var lines []string
	for in := bufio.NewScanner(text); ; {
		more := in.Scan()
		if more && namesTruck(in.Text()) {
			lines = append(lines, in.Text())
			stored++
		} else if more {
			nameless++
		}
		if len(lines) == 1000 || !more {
			r.send("lines", strings.Join(lines, "\n"), true)
			lines = lines[:0]
		}
		if !more {
			return stored, nameless
		}
	}
}

// namesTruck reports whether a line has the tag name.
func namesTruck(line string) bool {
	series, _, _ := strings.Cut(line, " ")
	return strings.Contains(series+",", ",name=")
}

// told is what a dataset says.
type told struct {
	rows, bytes int
	means       map[string]map[string]window.Summary // by field and truck
}

func (r *routed) read(name string, maxGap time.Duration) told {
	acme := tenant.MustParse("acme")
	d, err := r.ds.Find(r.t.Context(), acme, name)
	if err != nil {
		r.t.Fatal(err)
	}
	repo := d.Schema().For(r.sink.Store, acme)
	out := told{means: map[string]map[string]window.Summary{}}
	fields := map[string]bool{}
	trucks := map[string]tsdb.Entity{}
	var first, last time.Time
	for p, err := range repo.Under(tsdb.AllEntities()).Range(r.t.Context(), tsdb.AllTime()) {
		if err != nil {
			r.t.Fatal(err)
		}
		payload, _ := codec.Append(codec.Records(), nil, p.Value)
		out.rows++
		out.bytes += len(payload) + len("acme##") + len(name) + len(p.Entity.String()) + len("#") + 19
		trucks[p.Entity.String()] = p.Entity
		for field, v := range p.Value.All() {
			if _, ok := v.Number(); ok {
				fields[field] = true
			}
		}
		if first.IsZero() || p.Time.Before(first) {
			first = p.Time
		}
		if p.Time.After(last) {
			last = p.Time
		}
	}
	for field := range fields {
		out.means[field] = map[string]window.Summary{}
		a, err := window.New(window.Every(24*time.Hour), []window.Measure[codec.Record]{{
			Name:       field,
			Of:         func(v codec.Record) (float64, bool) { return v.Number(field) },
			Aggregates: window.Basic | window.Integral, Hold: true, MaxGap: maxGap,
		}}, window.Options{})
		if err != nil {
			r.t.Fatal(err)
		}
		for name, truck := range trucks {
			for b, err := range a.Read(r.t.Context(), repo, truck, tsdb.Between(first, last.Add(time.Second)), tsdb.OldestFirst) {
				if err != nil {
					r.t.Fatal(err)
				}
				if b.Values[0].Count > 0 {
					out.means[field][name] = b.Values[0]
				}
			}
		}
	}
	return out
}
