package lab

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tidemark-go/tidemark/examples/internal/tablets"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// The limits of a file.
const (
	maxFile       = 1 << 20
	maxTenants    = 100_000
	maxEntities   = 1_000_000_000
	maxDatasets   = 8
	maxFields     = 4
	maxQueries    = 16
	maxCandidates = 12
	maxPerSecond  = 100_000_000 // points of a dataset
)

// Parse reads a lab file, of up to 1 MiB. The error is a *FileError with all mistakes: unknown fields, wrong units,
// sizes that make no sense, keys that lack a field, each with its line and with what is allowed. It does no I/O.
func Parse(text []byte) (*Plan, error) {
	r := new(fileReader)
	p := r.plan(text)
	if err := (&FileError{r.mistakes}).sorted(); err != nil {
		return nil, err
	}
	return p, nil
}

// yamlLine is how the library says where a text is not YAML.
var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

func (r *fileReader) plan(text []byte) *Plan {
	if len(text) > maxFile {
		r.mistake(nil, "the file has %d bytes; want at most %d", len(text), maxFile)
		return nil
	}
	var file yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	if err := decoder.Decode(&file); err != nil {
		m := Mistake{Text: "the file is empty; tidectl lab init writes one to begin with"}
		if !errors.Is(err, io.EOF) {
			m.Text = "this is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")
			if at := yamlLine.FindStringSubmatch(m.Text); at != nil { // not on the first line
				m.Line, _ = strconv.Atoi(at[1])
				m.Text = "this is not YAML: " + at[2]
			}
		}
		r.mistakes = append(r.mistakes, m)
		return nil
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		r.mistake(nil, "the file holds more than one document; want one, without a line ---")
	}
	root := r.object(file.Content[0], "")
	p := &Plan{
		seed:     uint64(value(root, "seed", 1, 0, math.MaxInt32, parseCount, strconv.Itoa)),
		duration: duration(root, "duration", time.Hour, time.Minute, 31*day),
		heavy:    duration(root, "heavy", 5*time.Minute, 0, time.Hour),
	}
	p.name, _ = root.text("name")
	if text, at := root.text("starts"); at != nil {
		t, err := time.Parse("15:04", text)
		if err != nil {
			r.mistake(at, "starts is %s; want a time of the day, such as 08:00", quote(text))
		}
		p.starts = time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
	}
	r.tenants(p, root.field("tenants"))
	root.require("datasets", "a list of datasets")
	for i, n := range root.items("datasets", maxDatasets) {
		p.datasets = append(p.datasets, r.dataset(p, n, fmt.Sprintf("datasets[%d]", i)))
	}
	for i, n := range root.items("queries", maxQueries) {
		p.queries = append(p.queries, r.query(p, n, fmt.Sprintf("queries[%d]", i)))
	}
	root.require("candidates", "a list of candidates for the row key")
	for i, n := range root.items("candidates", maxCandidates) {
		if c := r.candidate(p, n, fmt.Sprintf("candidates[%d]", i)); c != nil {
			p.candidates = append(p.candidates, c)
		}
	}
	for _, list := range []struct {
		name  string
		found int
	}{{"datasets", len(p.datasets)}, {"candidates", len(p.candidates)}} {
		if n := root.field(list.name); n != nil && list.found == 0 && len(r.mistakes) == 0 {
			r.mistake(n, "%s is empty; want at least one", list.name)
		}
	}
	r.cluster(p, root.field("cluster"))
	r.expect(p, root.field("expect"))
	root.done()
	return p
}

func duration(o *object, name string, otherwise, least, most time.Duration) time.Duration {
	return time.Duration(value(o, name, int64(otherwise), int64(least), int64(most),
		func(text string) (int64, error) { d, err := parseDuration(text); return int64(d), err },
		func(d int64) string { return shownDuration(time.Duration(d)) }))
}

func (r *fileReader) cluster(p *Plan, node *yaml.Node) {
	o := r.object(node, "cluster")
	p.nodes = value(o, "nodes", 3, 1, 1000, parseCount, strconv.Itoa)
	if text, at := o.text("storage"); at != nil {
		switch text {
		case "ssd":
		case "hdd":
			p.storage = tablets.HDD
		default:
			r.mistake(at, "cluster.storage is %s; want ssd or hdd", quote(text))
		}
	}
	o.done()
}

func (r *fileReader) tenants(p *Plan, node *yaml.Node) {
	o := r.object(node, "tenants")
	p.tenants = value(o, "count", 1, 1, maxTenants, parseCount, strconv.Itoa)
	p.largest = value(o, "largest", 0, 0, 1, parsePercent, shownPercent)
	if p.largest != 0 && p.largest < 1/float64(p.tenants) {
		r.mistake(o.field("largest"), "tenants.largest is %s; want at least the equal part of %d tenants, %s", shownPercent(p.largest), p.tenants, shownPercent(1/float64(p.tenants)))
	}
	o.done()
}

// days are the daily curves that have a name: multiples of the average, by hour.
var days = map[string][24]float64{
	"flat":    {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	"office":  {0.2, 0.2, 0.2, 0.2, 0.2, 0.3, 0.6, 1.2, 2, 2.2, 2.2, 2, 1.6, 2, 2.2, 2.1, 1.8, 1.2, 0.6, 0.4, 0.3, 0.2, 0.2, 0.2},
	"evening": {0.6, 0.4, 0.3, 0.2, 0.2, 0.3, 0.5, 0.8, 0.9, 0.9, 1, 1, 1.1, 1, 1, 1.1, 1.3, 1.6, 1.9, 2.1, 2.1, 1.8, 1.3, 0.9},
	"commute": {0.2, 0.2, 0.1, 0.1, 0.3, 0.8, 1.8, 2.6, 2.2, 1.2, 0.9, 0.9, 1, 1, 1, 1.3, 2, 2.4, 1.8, 1, 0.6, 0.5, 0.4, 0.3},
}

func (r *fileReader) dataset(p *Plan, node *yaml.Node, path string) *dataset {
	o := r.object(node, path)
	d := &dataset{
		entities: value(o, "entities", 1000, 1, maxEntities, parseCount, strconv.Itoa),
		every:    duration(o, "every", time.Minute, 10*time.Millisecond, 366*day),
		skew:     value(o, "skew", 0, 0, 2, parseNumber, number),
		bytes:    value(o, "bytes", 100, 1, 1<<20, parseBytes, func(n int) string { return strconv.Itoa(n) + " B" }),
		keep:     duration(o, "keep", 30*day, time.Hour, 36500*day),
		day:      days["flat"],
	}
	o.require("name", "a name, such as readings")
	o.require("fields", "a list of key fields, such as [site(50), device]")
	o.require("entities", "how many there are in all tenants")
	o.require("every", "how often an entity writes, such as 1m")
	text, at := o.text("name")
	if d.name = text; at != nil {
		if err := rowkey.CheckDataset(text); err != nil {
			r.mistake(at, "%s is %s; want 1 to 32 of A-Z a-z 0-9 . _ -", o.name("name"), quote(text))
		}
		if slices.ContainsFunc(p.datasets, func(other *dataset) bool { return other.name == text }) {
			r.mistake(at, "%s is %s, which another dataset has; want a name of its own", o.name("name"), quote(text))
		}
	}
	r.fields(d, o)
	if late := r.object(o.field("late"), o.name("late")); late.node != nil {
		d.late = value(late, "share", 0, 0, 1, parsePercent, shownPercent)
		d.lateBy = duration(late, "up_to", time.Minute, time.Millisecond, 31*day)
		late.done()
	}
	if b := r.object(o.field("bursts"), o.name("bursts")); b.node != nil {
		b.require("every", "how long from one to the next, such as 15m")
		d.bursts.every = duration(b, "every", time.Hour, time.Second, 31*day)
		d.bursts.lasts = duration(b, "lasts", 10*time.Second, time.Second, day)
		d.bursts.times = value(b, "times", 10, 1, 1000, parseNumber, number)
		if d.bursts.lasts > d.bursts.every {
			r.mistake(b.field("lasts"), "%s is longer than %s", b.name("lasts"), b.name("every"))
		}
		b.done()
	}
	r.day(d, o)
	if rate := float64(d.entities) / d.every.Seconds(); rate > maxPerSecond {
		r.mistake(o.field("every"), "%s: %d entities that write every %s are %.3g points a second; want at most %.3g", o.path, d.entities, shownDuration(d.every), rate, float64(maxPerSecond))
	}
	o.done()
	return d
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

func (r *fileReader) day(d *dataset, o *object) {
	n := o.field("day")
	if n == nil {
		return
	}
	if n.Kind == yaml.SequenceNode {
		sum := 0.0
		for i, c := range n.Content {
			x, err := strconv.ParseFloat(c.Value, 64)
			if err != nil || x != 0 && !(x >= 1e-6 && x <= 1e9) || i >= 24 { // the curve is divided by its sum
				r.mistake(c, "%s has %s; want 24 numbers, one for each hour: 0, or 0.000001 to 1000000000", o.name("day"), described(c))
				return
			}
			d.day[i] = x
			sum += x
		}
		if len(n.Content) != 24 || sum == 0 {
			r.mistake(n, "%s has %d numbers; want 24, one for each hour, and not all 0", o.name("day"), len(n.Content))
			return
		}
		for i := range d.day {
			d.day[i] *= 24 / sum
		}
		return
	}
	curve, ok := days[n.Value]
	if !ok || n.Kind != yaml.ScalarNode { // the value of an alias is its name
		r.mistake(n, "%s is %s; want flat, office, evening, commute, or a list of 24 numbers", o.name("day"), described(n))
		return
	}
	sum := 0.0
	for _, x := range curve {
		sum += x
	}
	for i, x := range curve {
		d.day[i] = x * 24 / sum
	}
}

// sharedField is a field with the number of entities that share one of its values.
var sharedField = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]{0,31})(?:\(([0-9_]+[kM]?)\))?$`)

func (r *fileReader) fields(d *dataset, o *object) {
	nodes := o.items("fields", maxFields)
	for i, n := range nodes {
		var m []string
		if n.Kind == yaml.ScalarNode { // the value of an alias is its name
			m = sharedField.FindStringSubmatch(n.Value)
		}
		f := field{shared: 1}
		last := i == len(nodes)-1
		if m == nil {
			r.mistake(n, "%s has %s; want a name, and in all but the last how many entities share a value: [site(500), device]", o.name("fields"), described(n))
			continue
		}
		f.name = m[1]
		switch {
		case slices.Contains([]string{"tenant", "dataset", "entity", "time", "salt"}, f.name):
			r.mistake(n, "%s has %s, which means something else in a key; want another name", o.name("fields"), quote(f.name))
		case slices.ContainsFunc(d.fields, func(other field) bool { return other.name == f.name }):
			r.mistake(n, "%s has %s twice", o.name("fields"), quote(f.name))
		case last && m[2] != "":
			r.mistake(n, "%s has %s; want no number for the last field, whose values differ", o.name("fields"), quote(n.Value))
		case !last && m[2] == "":
			r.mistake(n, "%s has %s; want how many entities share a value, such as %s(100)", o.name("fields"), quote(n.Value), f.name)
		case !last:
			shared, err := parseCount(m[2])
			if err != nil || shared < 1 || shared > d.entities || i > 0 && len(d.fields) == i && shared > d.fields[i-1].shared {
				r.mistake(n, "%s has %s; want a number up to that of the field before it, and up to the %d entities", o.name("fields"), quote(n.Value), d.entities)
			}
			f.shared = max(shared, 1)
		}
		d.fields = append(d.fields, f)
	}
	if n := o.field("fields"); n != nil && n.Kind == yaml.SequenceNode && len(nodes) == 0 {
		r.mistake(n, "%s is empty; want at least one key field", o.name("fields"))
	}
}
