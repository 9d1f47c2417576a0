package web

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

var (
	noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	roof = tsdb.NewEntity("berlin", "roof-7")
)

func (p *page) put(id tenant.ID, e tsdb.Entity, at time.Time, value map[string]any) {
	p.t.Helper()
	if err := schema.For(p.store, id).Put(tenant.NewContext(p.t.Context(), id), e, at, value); err != nil {
		p.t.Fatal(err)
	}
}

// address returns the address of a query of the tenant acme and the dataset readings, with parameters in pairs.
func address(name string, pairs ...string) string {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return "/api/acme/readings/" + name + "?" + v.Encode()
}

func stampOf(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// TestTenantSeesOnlyItsOwn: whatever address a user of another tenant asks for, nothing of acme comes back, not even
// that it exists.
func TestTenantSeesOnlyItsOwn(t *testing.T) {
	private := tsdb.MustDefine("private", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{})
	p := newPage(t, nil)
	if err := p.store.Ensure(t.Context(), private); err != nil {
		t.Fatal(err)
	}
	p.put(acme, roof, noon, map[string]any{"secret": "treasure"})
	p.put(other, tsdb.NewEntity("paris", "cellar"), noon, map[string]any{"own": 1})
	ctx := tenant.NewContext(t.Context(), acme)
	if err := private.For(p.store, acme).Put(ctx, tsdb.NewEntity("d"), noon, 1); err != nil {
		t.Fatal(err)
	}
	entity := "entity=berlin/roof-7"
	times := "&from=2026-06-01T00:00:00Z&to=2026-06-02T00:00:00Z"
	queries := []string{
		"datasets", "readings/latest?field=secret", "readings/latest?part=berlin&field=secret", "readings/fields", "readings/fields?" + entity,
		"readings/silent?since=2026-07-01T00:00:00Z", "readings/sparks?field=secret&" + entity, "readings/lines?field=secret&" + entity + times,
		"readings/states?field=secret&" + entity + times, "readings/points?field=secret&" + entity + times, "readings/csv?field=secret&" + entity + times,
		"readings/asof?field=secret&time=2026-06-02T00:00:00Z&" + entity, "private/latest?field=.", "private/fields",
		"readings/live?field=secret&since=2026-05-01T00:00:00Z&" + entity,
	}
	acmes := []string{"acme", "ACME", "acme%20", "%61cme", "other/../acme", "other%2F..%2Facme", "acme%00", "acme#", "./acme", "other%23acme", "acme,other", "*", "%2e%2e/acme"}
	for name, login := range map[string]string{"nobody": "", "other": "secret-of-other"} {
		p.client = p.browser()
		if login != "" {
			p.login(login)
		}
		for _, id := range acmes {
			for _, q := range queries {
				status, body := p.get("/api/" + id + "/" + q)
				if status == http.StatusTemporaryRedirect { // to the cleaned address, which the list has, too
					continue
				}
				if status == http.StatusOK || strings.Contains(body, "treasure") || strings.Contains(body, "roof") || strings.Contains(body, "private") {
					t.Errorf("%s asks for /api/%s/%s: %d %s", name, id, q, status, body)
				}
			}
		}
	}
	for _, q := range queries { // its own tenant has none of acme's data
		if strings.Contains(q, "live?") {
			continue // it goes on
		}
		if _, body := p.get("/api/other/" + q); strings.Contains(body, "treasure") || strings.Contains(body, "private") {
			t.Errorf("/api/other/%s: %s", q, body)
		}
	}
	unknown, ofAcme := "/api/other/nothing/fields", "/api/other/private/fields"
	_, a := p.get(unknown)
	if _, b := p.get(ofAcme); a != b {
		t.Errorf("a dataset without points of the tenant answers %s, want %s as for one that does not exist", b, a)
	}
}

// TestValuesArriveAsTheyAre: what JavaScript cannot hold as a number comes as text with all digits, and a nested field
// has its names joined by dots.
func TestValuesArriveAsTheyAre(t *testing.T) {
	p := newPage(t, nil)
	floats := tsdb.MustDefine("floats", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{})
	if err := p.store.Ensure(t.Context(), floats); err != nil {
		t.Fatal(err)
	}
	p.put(acme, roof, noon, map[string]any{
		"big": int64(9007199254740993), "small": 0.1, "text": "<script>alert(1)</script>", "yes": true, "none": nil,
		"nested": map[string]any{"a.b": 7, `c\d`: "x"}, "list": []any{1, 2},
	})
	ctx := tenant.NewContext(t.Context(), acme)
	for i, x := range []float64{nan(), 1 / zero(), 1.5} {
		if err := floats.For(p.store, acme).Put(ctx, tsdb.NewEntity(fmt.Sprint(i)), noon, x); err != nil {
			t.Fatal(err)
		}
	}
	p.login("secret-of-acme")
	_, body := p.get(address("latest", "field", "big", "field", "small", "field", "text", "field", "yes", "field", "none", "field", "nested.a.b", "field", `nested.c\d`, "field", "list"))
	want := `"v":[{"text":"9007199254740993","number":9007199254740992},0.1,"\u003cscript\u003ealert(1)\u003c/script\u003e",true,null,7,"x",{"text":"[1,2]"}]`
	if !strings.Contains(body, want) {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	if _, body := p.get("/api/acme/floats/latest?field=."); !strings.Contains(body, `"v":[{"text":"NaN"}]`) || !strings.Contains(body, `"v":[{"text":"+Inf"}]`) || !strings.Contains(body, `"v":[1.5]`) {
		t.Errorf("floats: %s", body)
	}
	var found struct{ Fields []field }
	p.read(address("fields"), &found)
	var names []string
	for _, f := range found.Fields {
		names = append(names, fmt.Sprintf("%s %d/%d", f.Path, f.Numbers, f.States))
	}
	if got, want := fmt.Sprint(names), `[big 1/0 nested.a.b 1/0 nested.c\d 0/1 small 1/0 text 0/1 yes 0/1]`; got != want {
		t.Errorf("fields %s, want %s", got, want)
	}
}

func zero() float64 { return 0 }
func nan() float64  { return zero() / zero() }

// TestAnyNameOfAnEntity: names with characters of HTML, of addresses and of other scripts are found again by the text
// that the list has.
func TestAnyNameOfAnEntity(t *testing.T) {
	p := newPage(t, nil)
	p.login("secret-of-acme")
	names := []string{"<script>alert(1)</script>", `"'&`, "a/b", "50%", "50%2F", "#frag?x=1", "line\nbreak", "日本語", "\u202egnirts", "..", " ", "+", "=1+1", "back\\slash"}
	for i, name := range names {
		p.put(acme, tsdb.NewEntity(name, "d"), noon.Add(time.Duration(i)*time.Second), map[string]any{"n": i})
	}
	var list struct{ Rows []row2 }
	p.read(address("latest", "field", "n"), &list)
	if len(list.Rows) != len(names) {
		t.Fatalf("%d entities, want %d", len(list.Rows), len(names))
	}
	for _, r := range list.Rows {
		if !slices.Contains(names, r.Parts[0]) {
			t.Errorf("the list has %q, which is not a name", r.Parts[0])
		}
		var as struct{ Rows []row2 }
		p.read(address("asof", "entity", r.ID, "field", "n", "time", "2026-06-02T00:00:00Z"), &as)
		if len(as.Rows) != 1 || as.Rows[0].Parts[0] != r.Parts[0] || fmt.Sprint(as.Rows[0].V) != fmt.Sprint(r.V) {
			t.Errorf("%q: %+v, want %+v", r.ID, as.Rows, r)
		}
		var below struct{ Rows []row2 }
		p.read(address("latest", "part", r.Parts[0]), &below)
		if len(below.Rows) != 1 || below.Rows[0].ID != r.ID {
			t.Errorf("below %q: %+v", r.Parts[0], below.Rows)
		}
	}
}

// row2 is a row as a page reads it.
type row2 struct {
	ID    string
	Parts []string
	T     float64
	V     []any
}

// TestRefused: every parameter is bounded, and the response says what is allowed.
func TestRefused(t *testing.T) {
	p := newPage(t, nil)
	p.put(acme, roof, noon, map[string]any{"n": 1})
	p.login("secret-of-acme")
	from, to := "2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z"
	good := []string{"entity", "berlin/roof-7", "field", "n", "from", from, "to", to}
	with := func(name, value string) []string {
		out := slices.Clone(good)
		for i := 0; i < len(out); i += 2 {
			if out[i] == name {
				out[i+1] = value
				return out
			}
		}
		return append(out, name, value)
	}
	for _, c := range []struct{ address, want string }{
		{address("lines", with("columns", "0")...), "1 to 4000"},
		{address("lines", with("columns", "99999999999999999999")...), "1 to 4000"},
		{address("lines", with("from", "yesterday")...), "2026-06-01T12:00:00Z"},
		{address("lines", with("to", from)...), "after from"},
		{address("lines", with("to", "2826-06-02T00:00:00Z")...), "100 years"},
		{address("lines", with("gap", "-1s")...), "0s or more"},
		{address("lines", with("gap", "soon")...), "0s or more"},
		{address("lines", with("entity", "")...), "joined by /"},
		{address("lines", with("entity", "a/%zz")...), "joined by /"},
		{address("lines", with("entity", "onlyone")...), "entity"},
		{address("lines", with("entity", strings.Repeat("x", 5000)+"/y")...), ""},
		{address("lines", with("field", strings.Repeat("a.", 17)+"b")...), "16 names"},
		{address("lines", with("field", "")...), "1 to 1,000 bytes"},
		{address("lines", with("typo", "1")...), "not known"},
		{address("lines", append(slices.Clone(good), "entity", "a/b")...), "at most 1"},
		{address("lines", append([]string{"entity", "berlin/roof-7"}, good[4:]...)...), "at least one field"},
		{address("states", append(slices.Clone(good), "field", "m")...), "one field"},
		{address("points", with("size", "1001")...), "1 to 1000"},
		{address("points", with("order", "random")...), "newest or oldest"},
		{address("points", with("cursor", "forged")...), "cursor"},
		{address("latest", "limit", "10001"), "1 to 10000"},
		{address("latest", "part", "berlin", "part", "roof-7", "part", "more"), ""},
		{address("latest") + "&part=%ff", "UTF-8"},
		{address("latest") + "%zz", "percent escapes"},
		{address("asof", "time", from), "at least one"},
		{address("silent"), "2026-06-01T12:00:00Z"},
		{address("sparks", "entity", "a/b"), "one field"},
		{address("sparks", append(many("entity", 41), "field", "n")...), "at most 40"},
		{address("csv", append(many("entity", 13), "from", from, "to", to)...), "at most 12"},
		{address("latest", many("field", 33)...), "at most 12"},
		{address("advice", "typo", "1"), "not known"},
		{"/api/acme/datasets?typo=1", "not known"},
		{"/api/acme/health?typo=1", "not known"},
		{"/api/acme/storage?typo=1", "not known"},
		{"/api/acme/keys?typo=1", "not known"},
		{"/api/session?" + strings.Repeat("x", maxQuery+1), "16,384 bytes"},
	} {
		status, body := p.get(c.address)
		if status != http.StatusBadRequest || !strings.Contains(body, c.want) {
			t.Errorf("%.120s: %d %s; want 400 and %q", c.address, status, body, c.want)
		}
	}
	if status, _ := p.get("/api/acme/nothing/latest"); status != http.StatusNotFound {
		t.Errorf("an unknown dataset: %d", status)
	}
	if p.log.String() != "" {
		t.Errorf("the log has what users did wrong: %s", p.log)
	}
}

func many(name string, n int) (pairs []string) {
	for i := range n {
		pairs = append(pairs, name, fmt.Sprintf("site/d%d", i))
	}
	return pairs
}

// TestListIsBounded: a list ends at its limit and says that there are more, and the silent ones come by themselves.
func TestListIsBounded(t *testing.T) {
	p := newPage(t, nil)
	p.login("secret-of-acme")
	for i := range 5 {
		p.put(acme, tsdb.NewEntity("s", fmt.Sprint(i)), noon.Add(-time.Duration(i)*time.Hour), map[string]any{"n": i})
	}
	var list struct {
		Rows []row2
		More bool
	}
	p.read(address("latest", "limit", "3"), &list)
	if len(list.Rows) != 3 || !list.More {
		t.Errorf("%d rows, more %t; want 3 of 5", len(list.Rows), list.More)
	}
	p.read(address("silent", "since", stampOf(noon.Add(-90*time.Minute))), &list)
	if len(list.Rows) != 3 || list.Rows[0].ID != "s/4" {
		t.Errorf("silent: %+v, want three, s/4 first", list.Rows)
	}
	var sparks struct {
		Sparks []struct{ V [][]float64 }
	}
	p.read(address("sparks", "entity", "s/0", "entity", "s/none", "field", "n"), &sparks)
	if len(sparks.Sparks) != 2 || len(sparks.Sparks[0].V[0]) != 1 || len(sparks.Sparks[1].V[0]) != 0 {
		t.Errorf("sparks %+v, want one point, and none of the entity that has none", sparks)
	}
}

// TestBands: states last until the next point, the state before the interval goes on in it, silences are not filled,
// and changes that no pixel shows are one mixed band.
func TestBands(t *testing.T) {
	p := newPage(t, nil)
	p.login("secret-of-acme")
	put := func(seconds int, state any) {
		p.put(acme, roof, noon.Add(time.Duration(seconds)*time.Second), map[string]any{"s": state})
	}
	for i := -60; i < 0; i += 10 {
		put(i, "off")
	}
	for i := 0; i < 100; i += 10 {
		put(i, "on")
	}
	for i := 100; i < 110; i++ {
		put(i, i%2 == 0)
	}
	put(900, "late")
	type band struct {
		From, To float64
		State    string
		Mixed    bool
	}
	var got struct{ Bands []band }
	from := noon.Add(-35 * time.Second)
	p.read(address("states", "entity", "berlin/roof-7", "field", "s", "from", stampOf(from), "to", stampOf(noon.Add(1000*time.Second)), "gap", "60s", "columns", "100"), &got)
	var text []string
	start := float64(noon.UnixMilli())
	for _, b := range got.Bands {
		text = append(text, fmt.Sprintf("%s%v %v-%v", b.State, b.Mixed, (b.From-start)/1000, (b.To-start)/1000))
	}
	if got, want := fmt.Sprint(text), "[offfalse -35-0 onfalse 0-100 true 100-109 latefalse 900-900]"; got != want {
		t.Errorf("bands %s, want %s", got, want)
	}
}

// TestTableAndFile: the pages of the table repeat and skip nothing, and the file has all points with their key and all
// digits. No cell of it is a formula.
func TestTableAndFile(t *testing.T) {
	p := newPage(t, nil)
	p.login("secret-of-acme")
	e := tsdb.NewEntity("=cmd()", "roof,7")
	for i := range 25 {
		p.put(acme, e, noon.Add(time.Duration(i)*time.Minute), map[string]any{"n": -i, "big": int64(9007199254740993), "text": "@SUM(A1)\n\"x\""})
	}
	times := []string{"entity", e.String(), "from", stampOf(noon), "to", stampOf(noon.Add(time.Hour)), "field", "n"}
	seen := map[string]bool{}
	cursor := ""
	for range 3 {
		var page struct {
			Points []struct{ Time string }
			Next   string
		}
		q := append(slices.Clone(times), "size", "10")
		if cursor != "" {
			q = append(q, "cursor", cursor)
		}
		p.read(address("points", q...), &page)
		for _, one := range page.Points {
			seen[one.Time] = true
		}
		cursor = page.Next
	}
	if len(seen) != 25 || cursor != "" {
		t.Errorf("%d different points on three pages of 10, then cursor %q; want 25 and none", len(seen), cursor)
	}
	status, body := p.get(address("csv", append(times, "field", "big", "field", "text")...))
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if status != http.StatusOK || err != nil || len(rows) != 26 {
		t.Fatalf("%d, %d rows, %v", status, len(rows), err)
	}
	if got := strings.Join(rows[0], "|"); got != "site|device|time|n|big|text" {
		t.Errorf("columns %s", got)
	}
	if got, want := strings.Join(rows[2], "|"), "'=cmd()|roof,7|2026-06-01T12:01:00Z|-1|9007199254740993|'@SUM(A1)\n\"x\""; got != want {
		t.Errorf("row %q, want %q", got, want)
	}
}
