// Package devices has messages of devices, gateways and services in the form that their makers document, the routes
// that store them, and the points that are then stored. Tests of all ways to store and to read use them; no program
// imports it.
package devices

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

//go:embed *.txt
var files embed.FS

// Case is a message, and the points that it becomes.
type Case struct {
	Name    string // of the product and the message
	Source  string // the address of the maker's documentation
	Pattern string // of topics
	Words   string // of the route, after the pattern
	Topic   string
	Payload []byte
	Points  []Point
}

// Point is a point that is stored.
type Point struct {
	Key    []string
	Time   time.Time // zero if it is the time of arrival
	Fields codec.Record
}

// Cases returns all cases.
func Cases(t testing.TB) []Case {
	t.Helper()
	var all []Case
	for _, name := range []string{"devices.txt", "networks.txt", "services.txt"} {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, cases, _ := strings.Cut(string(text), "\n== ")
		for one := range strings.SplitSeq(cases, "\n== ") {
			c, err := parse(one)
			if err != nil {
				t.Fatalf("%s: %s: %v", name, c.Name, err)
			}
			all = append(all, c)
		}
	}
	return all
}

// parse reads a case. devices.txt describes its form.
func parse(text string) (c Case, err error) {
	head, rest, hasPayload := strings.Cut(text, "\npayload\n")
	payload, points, hasPoints := strings.Cut("\n"+rest, "\npoints")
	lines := strings.Split(head, "\n")
	c.Name = lines[0]
	if !hasPayload || !hasPoints || len(lines) != 4 {
		return c, fmt.Errorf("want the lines source, route, topic, payload and points")
	}
	route := strings.TrimPrefix(lines[2], "route ")
	c.Source, c.Topic = strings.TrimPrefix(lines[1], "source "), strings.TrimPrefix(lines[3], "topic ")
	c.Pattern, c.Words, _ = strings.Cut(route, " ")
	c.Payload = []byte(strings.TrimPrefix(payload, "\n"))
	for line := range strings.SplitSeq(strings.TrimSpace(points), "\n") {
		if line == "" {
			continue
		}
		p, err := parsePoint(line)
		if err != nil {
			return c, fmt.Errorf("%s: %w", line, err)
		}
		c.Points = append(c.Points, p)
	}
	return c, nil
}

func parsePoint(line string) (p Point, err error) {
	key, rest, _ := strings.Cut(line, "] ")
	at, fields, _ := strings.Cut(rest, " ")
	if err := json.Unmarshal([]byte(key+"]"), &p.Key); err != nil {
		return p, err
	}
	if at != "arrival" {
		if p.Time, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return p, err
		}
	}
	return p, json.Unmarshal([]byte(fields), &p.Fields)
}

// Line is the route as a line of a pattern file.
func (c Case) Line() string { return c.Pattern + " " + c.Words }

// Lines returns the pattern file of all cases.
func Lines(cases []Case) string {
	var lines []string
	for _, c := range cases {
		lines = append(lines, c.Line())
	}
	return strings.Join(lines, "\n")
}

// word returns the value of a word of the route.
func (c Case) word(name string) string {
	for word := range strings.FieldsSeq(c.Words) {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value
		}
	}
	return ""
}

// Captured returns the levels of the topic that the pattern names.
func (c Case) Captured() map[string]string {
	names := map[string]string{}
	levels := strings.Split(c.Topic, "/")
	for i, part := range strings.Split(c.Pattern, "/") {
		if name, ok := strings.CutPrefix(part, "+"); ok && name != "" {
			names[name] = levels[i]
		}
	}
	return names
}

// Schema returns a schema of the case's dataset that reads it.
func (c Case) Schema(t testing.TB) *tsdb.Schema[codec.Record] {
	t.Helper()
	s, err := tsdb.Define(c.word("dataset"), tsdb.Key(strings.Split(c.word("key"), ",")...), codec.Records(), tsdb.SchemaOptions{})
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	return s
}

// Put stores the points of the case for a tenant, with this time of arrival.
func (c Case) Put(t testing.TB, store *tsdb.Store, id tenant.ID, arrival time.Time) []tsdb.Point[codec.Record] {
	t.Helper()
	s := c.Schema(t)
	if err := store.Ensure(t.Context(), s); err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	var points []tsdb.Point[codec.Record]
	for _, p := range c.Points {
		at := p.Time
		if at.IsZero() {
			at = arrival
		}
		points = append(points, tsdb.Point[codec.Record]{Entity: tsdb.NewEntity(p.Key...), Time: at, Value: p.Fields})
	}
	if _, err := s.For(store, id).PutMany(tenant.NewContext(t.Context(), id), points); err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	return points
}

// CheckStored reads all points of the case's dataset, and compares them with those of the case.
func (c Case) CheckStored(t testing.TB, store *tsdb.Store, id tenant.ID, since time.Time) {
	t.Helper()
	repo := c.Schema(t).For(store, id)
	var got []tsdb.Point[codec.Record]
	for p, err := range repo.Under(tsdb.AllEntities()).Range(tenant.NewContext(t.Context(), id), tsdb.AllTime()) {
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			return
		}
		got = append(got, p)
	}
	c.Check(t, got, since)
}

// coarse is the largest unit of an arrival in the routes.
const coarse = time.Minute

// Check compares points with those of the case. A time of arrival is one since this one, cut to the unit of the route.
func (c Case) Check(t testing.TB, points []tsdb.Point[codec.Record], since time.Time) {
	t.Helper()
	arrived := c.word("time") == "arrival" || strings.HasPrefix(c.word("time"), "arrival,")
	var got, want []string
	for _, p := range points {
		at := p.Time.UTC().Format(time.RFC3339Nano)
		if arrived && !p.Time.Before(since.Truncate(coarse)) && !p.Time.After(time.Now()) {
			at = "arrival"
		}
		got = append(got, text(t, p.Entity, at, p.Value))
	}
	for _, p := range c.Points {
		at := "arrival"
		if !p.Time.IsZero() {
			at = p.Time.UTC().Format(time.RFC3339Nano)
		}
		want = append(want, text(t, tsdb.NewEntity(p.Key...), at, p.Fields))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s is stored as\n%s\nwant\n%s", c.Name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func text(t testing.TB, e tsdb.Entity, at string, r codec.Record) string {
	t.Helper()
	fields, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%q %s %s", e.String(), at, fields)
}
