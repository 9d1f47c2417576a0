package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
)

// indexPath is the address of the list of queries and datasets.
const indexPath = "/v1"

// query describes an endpoint. Every endpoint also takes timeout.
type query struct {
	Method     string   `json:"method"`
	Path       string   `json:"path"`
	Answers    string   `json:"answers"`
	Key        string   `json:"key,omitempty"`        // which key fields it takes as parameters
	Parameters []string `json:"parameters,omitempty"` // without the key fields
	answer     handler
}

// Which key fields a query takes.
const (
	wholeKey = "all fields"
	someKey  = "the first fields, or none"
	anyKey   = "all fields, the first ones, or none"
)

// queries returns all endpoints, for the router and for the index.
func (s *server) queries() []query {
	return []query{
		{http.MethodGet, indexPath, "these queries, and the datasets", "", nil, s.index},
		{http.MethodGet, "/v1/{dataset}/keys", "the keys of the entities that have points, page by page", someKey, []string{"size", "cursor"}, s.keys},
		{http.MethodGet, "/v1/{dataset}/latest", "the latest point of an entity", wholeKey, []string{"max_stale"}, s.latest},
		{http.MethodPost, "/v1/{dataset}/latest", `the latest points of {"keys":[…]}, up to 1000`, "", []string{"max_stale"}, s.latestMany},
		{http.MethodGet, "/v1/{dataset}/fields", "the newest value of each field of an entity, or of the entities of a group", anyKey, []string{"at", "points", "limit", "format"}, s.newestFields},
		{http.MethodPost, "/v1/{dataset}/fields", `the newest value of each field of {"keys":[…]}, up to 1000`, "", []string{"at", "points"}, s.fieldsMany},
		{http.MethodGet, "/v1/{dataset}/group", "the latest point of each entity of a group, page by page, or all as lines or CSV", someKey, []string{"limit", "cursor", "format"}, s.group},
		{http.MethodGet, "/v1/{dataset}/silent", "the entities of a group that have sent nothing since a time, the longest silence first", someKey, []string{"since", "limit", "format"}, s.silent},
		{http.MethodGet, livePath, "new points of an entity or of a group as they arrive, as server-sent events", anyKey, []string{"since"}, s.live},
		{
			http.MethodGet, "/v1/{dataset}/history", "the points of an entity, page by page, or all as lines or CSV", wholeKey,
			[]string{"from", "to", "order", "size", "cursor", "format"},
			s.history,
		},
		{
			http.MethodGet, "/v1/{dataset}/range", "the points of a group between two times, page by page, or all as lines or CSV", someKey,
			[]string{"from", "to", "order", "by", "size", "cursor", "format"},
			s.rangeUnder,
		},
		{
			http.MethodGet, "/v1/{dataset}/windows", "aggregates of the measures by window of time", wholeKey,
			[]string{"from", "to", "every", "zone", "order", "measures", "aggregates", "gaps", "max_gap", "format"},
			s.windows,
		},
		{
			http.MethodGet, "/v1/{dataset}/groups", "the windows of groups of entities, each adding up those of its entities", someKey,
			[]string{"by", "from", "to", "every", "zone", "order", "measures", "aggregates", "gaps", "max_gap", "format"},
			s.groups,
		},
		{
			http.MethodPost, "/v1/{dataset}/align", `the values of {"keys":[…]} at the same times`, "",
			[]string{"from", "to", "every", "zone", "order", "measures", "max_age", "format"},
			s.align,
		},
		{
			http.MethodGet, "/v1/{dataset}/outages", "the times in which an entity sent nothing", wholeKey,
			[]string{"from", "to", "longer", "order", "limit", "format"},
			s.outages,
		},
		{
			http.MethodGet, "/v1/{dataset}/uptime", "how long an entity was reporting, by window of time", wholeKey,
			[]string{"from", "to", "every", "zone", "longer", "order", "format"},
			s.uptime,
		},
		{
			http.MethodGet, "/v1/{dataset}/chart", "the samples of a line through the points of an entity, for a chart of some pixels", wholeKey,
			[]string{"from", "to", "measure", "columns", "max_gap", "method", "format"},
			s.chart,
		},
	}
}

// shownDataset is a dataset as clients see it.
type shownDataset struct {
	Name     string   `json:"name"`
	Key      []string `json:"key"`
	Measures []string `json:"measures"`
}

// index answers GET: the endpoints and the datasets.
func (s *server) index(w http.ResponseWriter, r request) error {
	if err := r.params.check(); err != nil {
		return err
	}
	if _, err := accepted(r.Request, asJSON); err != nil {
		return err
	}
	datasets := []shownDataset{}
	for _, name := range slices.Sorted(maps.Keys(s.datasets)) {
		datasets = append(datasets, shownDataset{name, s.datasets[name].fields(), s.datasets[name].measures()})
	}
	return write(w, struct {
		Datasets []shownDataset `json:"datasets"`
		Queries  []query        `json:"queries"`
	}{datasets, s.queries()})
}

// root answers GET of the address without a path. It takes no token, and so names no dataset.
func (s *server) root(w http.ResponseWriter, r *http.Request) {
	if _, err := accepted(r, asJSON); err != nil {
		s.fail(w, r, err)
		return
	}
	err := write(w, struct {
		Token   string  `json:"token"`
		Queries []query `json:"queries"`
	}{"Authorization: Bearer …", s.queries()})
	if err != nil {
		s.fail(w, r, err)
	}
}

// printLines prints curl commands to copy. Without -demo they need the variable TOKEN.
func printLines(out io.Writer, addr string, demo bool) {
	token, paths := `"Authorization: Bearer $TOKEN"`, []string{indexPath, "/v1/weather/keys", "/v1/weather/group"}
	if demo {
		token = "'Authorization: Bearer " + demoToken + "'"
		paths = append(paths, "/v1/weather/latest?site=berlin&device=roof-7", "/v1/weather/history?site=berlin&device=roof-7&size=3",
			"/v1/positions/group?company=stc&route=22")
	}
	for _, path := range paths {
		fmt.Fprintf(out, "  curl -H %s 'http://%s%s'\n", token, addr, path)
	}
}
