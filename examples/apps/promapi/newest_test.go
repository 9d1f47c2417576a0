package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// turns is what devices send that do not send all fields at once.
type turns struct {
	Temp  *codec.Value `json:"temp,omitempty"`
	Door  string       `json:"door,omitempty"`
	Event string       `json:"event,omitempty"`
}

// turnData has heads with the newest value of each field, or not.
func turnData(heads, nulls bool) *tsdb.Schema[turns] {
	return tsdb.MustDefine("turns", tsdb.Key("id"), codec.JSON[turns](), tsdb.SchemaOptions{
		Precision: tsdb.Milliseconds, NullClears: nulls, Head: tsdb.Head{Fields: heads},
	})
}

func putTurn(t *testing.T, s *stand, schema *tsdb.Schema[turns], second int, v turns) {
	t.Helper()
	putPoints(t, s, schema, acme, tsdb.Point[turns]{Entity: tsdb.NewEntity("a"), Time: time.UnixMilli(start0).Add(time.Duration(second) * time.Second), Value: v})
}

// answersAt checks the result of a query, in which a is the metric's labels but its name.
func (s *stand) answersAt(t *testing.T, second int, query, want string) {
	t.Helper()
	status, got := s.get("query", "query", query, "time", at(second))
	_, got, _ = strings.Cut(got, `"result":`)
	if status != http.StatusOK || got != want+"}}" {
		t.Errorf("%s at second %d: %d\n got %s\nwant %s", query, second, status, got, want)
	}
}

// TestFieldsInTurn: a value counts until another point has the field, or until it is older than the lookback. It is the
// same with heads, which answer only if no point is newer than the query.
func TestFieldsInTurn(t *testing.T) {
	warm := codec.Float(20.5)
	sent := []struct {
		second int
		value  turns
	}{
		{0, turns{Temp: &warm}}, {10, turns{Door: "open"}}, {20, turns{Event: "on"}}, {200, turns{Event: "on"}}, {400, turns{Door: "shut"}},
	}
	info := func(second, others string) string {
		return `[{"metric":{"__name__":"turns_info",` + others + `"id":"a"},"value":[` + second + `,"1"]}]`
	}
	want := []struct {
		second      int
		query, data string
	}{
		{20, "turns_temp", `[{"metric":{"__name__":"turns_temp","id":"a"},"value":[` + at(20) + `,"20.5"]}]`},
		{20, "turns_info", info(at(20), `"door":"open","event":"on",`)},
		{20, `turns_info{door="open"}`, info(at(20), `"door":"open","event":"on",`)},
		{20, "turns_temp * on (id) group_left (door) turns_info", `[{"metric":{"door":"open","id":"a"},"value":[` + at(20) + `,"20.5"]}]`},
		{60, `turns_info{event=""}[55s]`, `[{"metric":{"__name__":"turns_info","door":"open","id":"a"},"values":[[` + at(10) + `,"1"]]}]`},
		{240, "turns_info[1m]", `[{"metric":{"__name__":"turns_info","door":"open","event":"on","id":"a"},"values":[[` + at(200) + `,"1"]]}]`},
		{299, "turns_temp", `[{"metric":{"__name__":"turns_temp","id":"a"},"value":[` + at(299) + `,"20.5"]}]`},
		{300, "turns_temp", "[]"},
		{309, "turns_info", info(at(309), `"door":"open","event":"on",`)},
		{310, "turns_info", info(at(310), `"event":"on",`)},
		{499, "turns_info", info(at(499), `"door":"shut","event":"on",`)},
		{500, "turns_info", info(at(500), `"door":"shut",`)},
		{699, "turns_info", info(at(699), `"door":"shut",`)},
		{700, "turns_info", "[]"},
	}
	for name, heads := range map[string]bool{"points": false, "heads": true} {
		t.Run(name, func(t *testing.T) {
			schema := turnData(heads, false)
			s := mappedOver(t, someLimits, schema)
			for i, one := range sent {
				putTurn(t, s, schema, one.second, one.value)
				for _, w := range want {
					if w.second >= one.second && (i+1 == len(sent) || w.second < sent[i+1].second) {
						s.answersAt(t, w.second, w.query, w.data) // nothing is newer
					}
				}
			}
			for _, w := range want {
				s.answersAt(t, w.second, w.query, w.data)
			}
			for path, data := range map[string]string{
				"series": `[{"__name__":"turns_info","door":"shut","event":"on","id":"a"}]`, "label/event/values": `["on"]`,
			} {
				if _, got := s.get(path, "match[]", `turns_info{event="on"}`); got != `{"status":"success","data":`+data+`}` {
					t.Errorf("%s: %s, want %s", path, got, data)
				}
			}
		})
	}
}

// TestNulls: a null is no value, unless the dataset says that it is.
func TestNulls(t *testing.T) {
	warm, null := codec.Float(20.5), codec.Value{}
	if err := null.UnmarshalJSON([]byte("null")); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ heads, nulls bool }{"points": {}, "heads": {heads: true}, "clears": {true, true}} {
		schema := turnData(tt.heads, tt.nulls)
		s := mappedOver(t, someLimits, schema)
		putTurn(t, s, schema, 0, turns{Temp: &warm})
		putTurn(t, s, schema, 10, turns{Temp: &null, Door: "open"})
		before := `[{"metric":{"__name__":"turns_temp","id":"a"},"value":[` + at(20) + `,"20.5"]}]`
		if tt.nulls {
			before = "[]"
		}
		t.Run(name, func(t *testing.T) {
			s.answersAt(t, 20, "turns_temp", before)
			putTurn(t, s, schema, 30, turns{Door: "shut"}) // newer than the query
			s.answersAt(t, 20, "turns_temp", before)
		})
	}
}
