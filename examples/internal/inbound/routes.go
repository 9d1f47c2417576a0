package inbound

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Routes map topics to tenants, datasets and keys. ParseRoutes makes them.
type Routes struct {
	all     []*Route
	mapping Mapping
	keys    Keys // of the mapping
}

// Route says where messages of one pattern are stored, and how their payload is read. It is read-only and safe for
// concurrent use.
type Route struct {
	pattern  pattern
	tenant   string // of all messages; empty if each says its own
	property string // the name of the property that says it
	dataset  string // empty if each message or line says its own
	key      []string
	rule     []string // the key as it is written, with a ? after fields that may be missing
	format   string
	time     string         // the field with the time, or timeArrival
	unit     time.Duration  // of a number in it; 0 if it is a text
	auto     bool           // whether the size of the number says its unit
	zone     *time.Location // of a text without an offset; nil if it is refused
	cut      time.Duration  // which the time of arrival is a multiple of
	arrays   string         // how arrays are stored; empty if they are left out
	each     string         // the array whose elements make points
	into     string         // the field of a payload that is no object, or a + and the level that names it
	strict   bool           // whether a message with a field that cannot be stored is refused
	numbers  []string       // fields that are numbers, also where they come as decimal text
	asText   []string       // fields that are text, also where they come as numbers
	merge    bool
	apart    map[string]bool              // the datasets of routes that do not merge
	change   *tsdb.OnChange[codec.Record] // nil if each point is stored
	changes  string                       // the same in words

	count  time.Duration // the width of buckets; 0 if messages are points
	id     string        // the field with the message's identity
	idProp string        // or the property
	sums   []string
	keep   time.Duration // how long an identity is remembered
	counts *rollup.Rollup[codec.Record]
}

// The names that a pattern captures for other uses than the key.
const (
	tenantName  = "tenant"
	datasetName = "dataset"
)

const (
	formatJSON  = "json"
	formatLine  = "line"
	arraysIndex = "index"
	arraysJSON  = "json"
	timeArrival = "arrival"
)

// maxRoutes bounds a pattern file, because each message tries the routes in turn.
const maxRoutes = 100

// ParseRoutes reads a pattern file: one route on each line, as a pattern and words. The first matching route of a topic
// applies. Lines that begin with # are comments; the pattern of all topics is +/#. Lines that begin with store or drop
// are those of a Mapping. The error has a line for each faulty line.
//
//	# topic                          where and how
//	v1/+tenant/+site/+device/data    dataset=telemetry key=site,device time=ts,ms
//	v1/+tenant/+device/views         dataset=views key=device time=at count=1h id=message_id
//	telegraf/+tenant/#               format=line key=host,* time=ns
//
// The levels +tenant and +dataset name these. Other captured levels are tags: key fields if key= names them, and
// otherwise fields that begin with "tag:". A field of the payload that key= names is a key field, too. The README of
// examples/apps/mqtt lists the words.
func ParseRoutes(r io.Reader) (*Routes, error) {
	rs := &Routes{keys: Keys{}}
	var faults []error
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if err := rs.addLine(words); err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", n, err))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(faults) == 0 && len(rs.all) == 0 && len(rs.mapping.rules)+len(rs.mapping.drops) == 0 {
		return nil, errors.New("no line has a route")
	}
	apart := map[string]bool{}
	for _, r := range rs.all {
		r.apart = apart
		if !r.merge {
			apart[r.dataset] = true
		}
		if rs.keys[r.dataset] != nil {
			faults = append(faults, fmt.Errorf("the dataset %s is named by a store line and by a route", r.dataset))
		}
		if r.IsLines() {
			faults = append(faults, rs.mapping.keeps(AnyDataset, r.key))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return rs, nil
}

// addLine takes the words of a line.
func (rs *Routes) addLine(words []string) error {
	if isMapping(words) {
		return rs.mapping.Add(strings.Join(words, " "), rs.keys)
	}
	r, err := ParseRoute(words[0], words[1:]...)
	if err != nil {
		return err
	}
	return rs.add(r)
}

// Mapping returns the store and drop lines.
func (rs *Routes) Mapping() *Mapping { return &rs.mapping }

// add appends a route. Routes to one dataset must agree in what is stored.
func (rs *Routes) add(r *Route) error {
	if len(rs.all) == maxRoutes {
		return fmt.Errorf("more than %d routes", maxRoutes)
	}
	for _, other := range rs.all {
		if other.filter() == r.filter() {
			return fmt.Errorf("the pattern %s matches the same topics as an earlier one", r.filter())
		}
		if other.dataset != r.dataset {
			continue
		}
		if !slices.Equal(other.rule, r.rule) || other.merge != r.merge || !other.sameCounts(r) || other.changes != r.changes {
			return fmt.Errorf("the dataset %s has another key, merge, onchange, count, sum or remember in an earlier route", cmp.Or(r.dataset, "of each message"))
		}
		r.counts, r.change = other.counts, other.change
	}
	rs.all = append(rs.all, r)
	return nil
}

func (r *Route) filter() string { return r.pattern.filter() }

func (r *Route) sameCounts(other *Route) bool {
	return r.count == other.count && r.keep == other.keep && slices.Equal(r.sums, other.sums)
}

// ParseRoute reads one route: a pattern of topics, and words such as dataset=telemetry. Inputs without topics, whose
// messages have named attributes, give the pattern "#".
func ParseRoute(topics string, words ...string) (*Route, error) {
	p, err := parsePattern(topics)
	if err != nil {
		return nil, err
	}
	r := &Route{pattern: p, format: formatJSON}
	given := map[string]bool{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if given[name] {
			return nil, fmt.Errorf("the word %s is given twice", name)
		}
		given[name] = true
		if err := r.set(name, value); err != nil {
			return nil, err
		}
	}
	if err := r.check(given); err != nil {
		return nil, err
	}
	return r, r.defineCounts()
}

// Text reports whether the route keeps a field as text.
func (r *Route) Text(field string) bool { return slices.Contains(r.asText, field) }

// Number reports whether the route makes a number of a field.
func (r *Route) Number(field string) bool { return slices.Contains(r.numbers, field) }

// Arrival reports whether the time of a message is the one at which it arrives.
func (r *Route) Arrival() bool { return r.time == timeArrival }

// Match returns the first route of a topic, with the levels that it captures, or nil.
func (rs *Routes) Match(topic string) (*Route, map[string]string) {
	for _, r := range rs.all {
		if captured, ok := r.pattern.match(topic); ok {
			return r, captured
		}
	}
	return nil, nil
}

// Filters returns the MQTT subscriptions of all routes. A route whose topics all match the pattern of another one needs
// none of its own: brokers may deliver a message once for each subscription that it matches.
func (rs *Routes) Filters() []string {
	var filters []string
	for _, r := range rs.all {
		if !slices.ContainsFunc(rs.all, func(other *Route) bool { return other != r && other.pattern.covers(r.pattern) }) {
			filters = append(filters, r.filter())
		}
	}
	return filters
}

// SaysTenant reports whether each message of each route says its tenant.
func (rs *Routes) SaysTenant() bool {
	return !slices.ContainsFunc(rs.all, func(r *Route) bool { return !r.saysTenant() })
}

func (r *Route) saysTenant() bool {
	return r.tenant != "" || r.property != "" || slices.Contains(r.pattern.names(), tenantName)
}

// Keys returns the rules of the routes' datasets.
func (rs *Routes) Keys() Keys {
	keys := maps.Clone(rs.keys)
	for _, r := range rs.all {
		keys[cmp.Or(r.dataset, AnyDataset)] = r.rule
	}
	return keys
}

// Schemas defines the datasets of routes that do not merge; NewDatasets defines the others. They share the options.
func (rs *Routes) Schemas(shared tsdb.SchemaOptions) ([]*tsdb.Schema[codec.Record], error) {
	var schemas []*tsdb.Schema[codec.Record]
	done := map[string]bool{}
	for _, r := range rs.all {
		if r.merge || r.dataset == "" || done[r.dataset] {
			continue
		}
		done[r.dataset] = true
		opts := shared
		if r.counts != nil {
			opts.Rollups = []tsdb.Rollup{r.counts}
		}
		s, err := tsdb.Define(r.dataset, tsdb.Key(r.key...), codec.Records(), opts)
		if err != nil {
			return nil, err
		}
		schemas = append(schemas, s)
	}
	return schemas, nil
}

// Tenant returns the tenant of a message. All that name one must name the same: the route, the captured level or
// attribute, the property, and the connection, if it belongs to a tenant. The error is an *Error.
func (r *Route) Tenant(m Message, connection tenant.ID) (tenant.ID, error) {
	id := connection
	agree := func(source, name string) error {
		said, err := tenant.Parse(name)
		switch {
		case err != nil:
			return &Error{ReasonTenant, fmt.Errorf("%s: %w", source, err)}
		case !id.IsZero() && id != said:
			return &Error{ReasonTenant, fmt.Errorf("%s names the tenant %s, but the message belongs to %s", source, said, id)}
		}
		id = said
		return nil
	}
	if r.tenant != "" {
		if err := agree("the route", r.tenant); err != nil {
			return tenant.ID{}, err
		}
	}
	if name, ok := m.Names[tenantName]; ok {
		if err := agree("the topic", name); err != nil {
			return tenant.ID{}, err
		}
	}
	if r.property != "" {
		said := m.property(r.property)
		if len(said) == 0 {
			return tenant.ID{}, &Error{ReasonTenant, fmt.Errorf("the message lacks the property %s, which names its tenant", r.property)}
		}
		for _, name := range said {
			if err := agree("the property "+r.property, name); err != nil {
				return tenant.ID{}, err
			}
		}
	}
	if id.IsZero() {
		return tenant.ID{}, &Error{ReasonTenant, errors.New("nothing names the message's tenant")}
	}
	return id, nil
}

// ReasonTenant is the reason of messages without one tenant that may store them.
const ReasonTenant = "its tenant is not accepted"

// checkNamed refuses a dataset that a message or a line names, if a route stores it without merge: the message would
// replace a point that it should merge with, or that of another series.
func (r *Route) checkNamed(d *Dataset) error {
	if r.dataset == "" && r.apart[d.name] {
		return &Error{"a route has its dataset", fmt.Errorf("the dataset %s is that of a route that does not say merge", d.name)}
	}
	return nil
}

// defineCounts makes the rollup of a route that counts.
func (r *Route) defineCounts() error {
	if r.count == 0 {
		return nil
	}
	var sums []rollup.Measure[codec.Record]
	for _, name := range r.sums {
		sums = append(sums, rollup.Measure[codec.Record]{Name: name, Decimals: sumDecimals, Max: sumMax, Of: func(v codec.Record) (float64, bool) { return v.Number(name) }})
	}
	var err error
	r.counts, err = rollup.Define(CountName, window.Every(r.count), sums, rollup.Options{Mode: rollup.ByMessage, Remember: r.keep, MaxMessages: maxMessages})
	return err
}

// CountName is the name of the rollup that a route with count= adds to.
const CountName = "count"

// A number that is summed keeps three decimal places, and is at most a million million. A row of counts remembers up to
// maxMessages identities.
const (
	sumDecimals = 3
	sumMax      = 1e12
	maxMessages = 100_000
)
