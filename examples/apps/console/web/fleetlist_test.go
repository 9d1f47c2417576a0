package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

type listAnswer struct {
	Rows []struct {
		ID string
		T  float64
		V  []any
	}
	Fields, Never        []string
	Looked, Matched, Cut int
	More                 bool
	Last                 string
}

func (l listAnswer) names() string {
	var all []string
	for _, r := range l.Rows {
		all = append(all, strings.TrimPrefix(r.ID, "berlin/"))
	}
	return strings.Join(all, " ")
}

// TestFilteredList: the server chooses and orders entities by their newest values, also of fields that their newest
// points lack and that the page does not show.
func TestFilteredList(t *testing.T) {
	p := newPage(t, nil)
	p.login("secret-of-acme")
	now := time.Now()
	for i, battery := range []any{50, 9, "12", nil, 90, 15} {
		e := tsdb.NewEntity("berlin", fmt.Sprint("v", i))
		at := now.Add(-time.Duration(i) * 10 * time.Minute)
		value := map[string]any{"fault": i%2 == 1, "state": []string{"parked", "driving"}[i/3]}
		if battery != nil {
			value["battery_pct"] = battery
		}
		p.put(acme, e, at.Add(-time.Minute), value)
		p.put(acme, e, at, map[string]any{"door": i})
	}
	for query, want := range map[string]string{
		"":                       "v0 v1 v2 v3 v4 v5",
		"where=battery_pct < 20": "v1 v2 v5",
		"where=battery_pct < 20&sort=-battery_pct":      "v5 v2 v1", // text that is a number is one
		"sort=battery_pct":                              "v1 v2 v5 v0 v4 v3",
		"sort=-battery_pct&limit=2":                     "v4 v0",
		"sort=age":                                      "v0 v1 v2 v3 v4 v5",
		"sort=-age&limit=2":                             "v5 v4",
		"sort=-name&limit=1":                            "v5",
		"where=fault":                                   "v1 v3 v5",
		"where=fault and silent for 25 min":             "v3 v5",
		"where=silent&silent=35m":                       "v4 v5",
		"where=state = driving or battery_pct = 50":     "v0 v3 v4 v5",
		"where=name ~ v1":                               "v1",
		"where=site = berlin and not battery_pct":       "v3",
		"where=site = paris":                            "",
		"part=berlin&where=device = v2":                 "v2",
		"where=state = driving&sort=`state`&limit=1000": "v3 v4 v5",
	} {
		var got listAnswer
		p.read(address("latest")+strings.NewReplacer(" ", "%20", "<", "%3C", "`", "%60").Replace("&"+query), &got)
		if got.names() != want || got.Looked != 6 && query != "" || got.More {
			t.Errorf("%s: %q of %d, want %q", query, got.names(), got.Looked, want)
		}
	}
	var got listAnswer
	p.read(address("latest", "field", "door", "where", "battery_pct < 20 and batery", "sort", "fault"), &got)
	if !slices.Equal(got.Fields, []string{"door", "battery_pct", "batery", "fault"}) || !slices.Equal(got.Never, []string{"batery"}) || got.Matched != 0 {
		t.Errorf("the list is %+v", got)
	}
	for _, q := range [][]string{{"where", "battery_pct <"}, {"where", "a", "where", "b"}, {"sort", ""}, {"silent", "soon"}, {"where", "a1 or a2 or a3 or a4 or a5 or a6 or a7 or a8 or a9 or b1 or b2 or b3 or b4"}} {
		if status, body := p.get(address("latest", q...)); status != http.StatusBadRequest {
			t.Errorf("%q: %d %s", q, status, body)
		}
	}
}

// TestFilterIsBounded: of a fleet that is larger than what a filter looks at, the list says where it ended. A value
// that is behind the points which are looked at together is searched for in few entities, and the list says in how many
// it was not.
func TestFilterIsBounded(t *testing.T) {
	p := newPage(t, nil)
	p.login("secret-of-acme")
	const n = mostSearched + 8
	ctx := tenant.NewContext(t.Context(), acme)
	var points []tsdb.Point[map[string]any]
	for i := range n {
		e := tsdb.NewEntity("berlin", fmt.Sprintf("v%04d", i))
		points = append(points, tsdb.Point[map[string]any]{Entity: e, Time: noon, Value: map[string]any{"deep": i}})
		for m := range fewPoints {
			points = append(points, tsdb.Point[map[string]any]{Entity: e, Time: noon.Add(time.Duration(m+1) * time.Second), Value: map[string]any{"door": m}})
		}
	}
	for part := range slices.Chunk(points, 1000) {
		if _, err := schema.For(p.store, acme).PutMany(ctx, part); err != nil {
			t.Fatal(err)
		}
	}
	var got listAnswer
	p.conn.Reset()
	p.read(address("latest", "where", "deep < 10"), &got)
	if took := p.calls(); got.Looked != n || got.Matched != 0 || got.Cut != n || took > n/3 {
		t.Errorf("%d of %d entities match, %d were cut, in %d requests; want none, and that all were cut, in fewer requests than entities", got.Matched, got.Looked, got.Cut, took)
	}
	p.read(address("latest", "where", "door = 14", "limit", "10"), &got)
	if got.Matched != n || got.Cut != 0 || len(got.Rows) != 10 {
		t.Errorf("%d of %d entities match, %d were cut, %d rows", got.Matched, got.Looked, got.Cut, len(got.Rows))
	}
	p.read(address("latest", "limit", "10"), &got)
	if got.Looked != 10 || !got.More || got.Last != "berlin/v0009" {
		t.Errorf("the list ends after %d entities at %q, more %v", got.Looked, got.Last, got.More)
	}
}

// TestSlowListEnds: a list for which the time does not suffice has the entities that were looked at, and says where it
// ended.
func TestSlowListEnds(t *testing.T) {
	p := newPage(t, nil)
	ctx := tenant.NewContext(t.Context(), acme)
	var points []tsdb.Point[map[string]any]
	for i := range 400 {
		points = append(points, tsdb.Point[map[string]any]{Entity: tsdb.NewEntity("berlin", fmt.Sprintf("v%04d", i)), Time: noon, Value: map[string]any{"n": i}})
	}
	if _, err := schema.For(p.store, acme).PutMany(ctx, points); err != nil {
		t.Fatal(err)
	}
	d, err := p.console.catalog.find(ctx, acme, "readings")
	if err != nil {
		t.Fatal(err)
	}
	for until, want := range map[time.Time]int{time.Now().Add(-time.Second): 255, time.Now().Add(time.Hour): 400} {
		l := &list{d: d, repo: d.values.For(p.store, acme), prefix: tsdb.AllEntities(), most: maxFleet, until: until, lacking: map[tsdb.Entity]int{}, has: map[string]bool{}}
		if err := l.look(ctx); err != nil || l.Looked != want || len(l.Rows) != want || l.More != (want < 400) || !strings.HasSuffix(l.Last.String(), fmt.Sprintf("v%04d", want-1)) {
			t.Errorf("%d entities were looked at, up to %v, more %v, %v; want %d", l.Looked, l.Last, l.More, err, want)
		}
	}
}

// TestEntityNames: a search for a part of a name finds entities by any part of their keys.
func TestEntityNames(t *testing.T) {
	p := newPage(t, nil)
	p.login("secret-of-acme")
	for _, id := range [][2]string{{"berlin", "roof-7"}, {"berlin", "Cellar/3"}, {"paris", "roof-1"}} {
		p.put(acme, tsdb.NewEntity(id[0], id[1]), noon, map[string]any{"n": 1})
	}
	for _, test := range []struct {
		pairs []string
		want  []string
		more  bool
	}{
		{nil, []string{"berlin/Cellar%2F3", "berlin/roof-7", "paris/roof-1"}, false},
		{[]string{"name", "ROOF"}, []string{"berlin/roof-7", "paris/roof-1"}, false},
		{[]string{"name", "lin/cellar/"}, []string{"berlin/Cellar%2F3"}, false},
		{[]string{"name", "roof", "part", "paris"}, []string{"paris/roof-1"}, false},
		{[]string{"name", "", "limit", "1"}, []string{"berlin/Cellar%2F3"}, true},
		{[]string{"name", "nothing"}, nil, false},
	} {
		var got struct {
			Entities []struct{ ID string }
			More     bool
		}
		p.read(address("entities", test.pairs...), &got)
		var names []string
		for _, e := range got.Entities {
			names = append(names, e.ID)
		}
		if !slices.Equal(names, test.want) || got.More != test.more {
			t.Errorf("%q: %q, more %v; want %q, %v", test.pairs, names, got.More, test.want, test.more)
		}
	}
}

// calls is how many requests the console has sent to the table since the last reset.
func (p *page) calls() (n int) {
	for _, calls := range p.conn.Counts().Calls {
		n += calls
	}
	return n
}
