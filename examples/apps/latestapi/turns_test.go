package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/internal/proof/fieldtest"
	"github.com/tidemark-go/tidemark/tsdb"
)

var turnEntities = flag.Int("turn.entities", 50, "how many entities TestTurns has; 5000 is the whole check")

// TestTurns: devices send fields in turn, and each address has the newest value of each field with its time.
func TestTurns(t *testing.T) {
	a := newLimited(t, app.Bounds{Body: 64 << 10, Requests: 16, Timeout: time.Minute})
	schema := tsdb.MustDefine("turns", tsdb.Key("unit"), codec.JSON[map[string]any](), tsdb.SchemaOptions{})
	if err := a.store.Ensure(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	a.server.datasets["turns"] = show(a.store, schema, nil)
	all := fieldtest.Turns(*turnEntities)
	for part := range slices.Chunk(all, 5000) {
		var points []tsdb.Point[map[string]any]
		for _, m := range part {
			points = append(points, tsdb.Point[map[string]any]{Entity: tsdb.NewEntity(strconv.Itoa(m.Entity)), Time: m.Time, Value: m.Values})
		}
		if err := put(t.Context(), schema.For(a.store, acme), points); err != nil {
			t.Fatal(err)
		}
	}
	middle := fieldtest.TurnStart.Add(fieldtest.TurnMessages / 2 * 10 * time.Second)
	for _, asOf := range []time.Time{{}, middle} {
		a.turns("each", all, asOf, a.turnsEach)
		a.turns("lists", all, asOf, a.turnsLists)
		a.turns("lines of a group", all, asOf, a.turnsLines)
	}
}

// turnedFields is an answer.
type turnedFields struct {
	Key   struct{ Unit string }
	Value map[string]float64
	Times map[string]time.Time
}

// turns compares the answers of an address with what was sent.
func (a *api) turns(what string, all []fieldtest.Message, asOf time.Time, read func(query string) []turnedFields) {
	a.t.Helper()
	began, query := time.Now(), ""
	if asOf.IsZero() {
		asOf = fieldtest.TurnStart.Add(time.Hour)
	} else {
		query = "at=" + asOf.Format(time.RFC3339)
	}
	found := read(query)
	took, want, tally := time.Since(began).Round(time.Millisecond), fieldtest.NewestOf(all, asOf), fieldtest.Tally{}
	for _, f := range found {
		i, err := strconv.Atoi(f.Key.Unit)
		if err != nil || want[i] == nil || len(f.Times) != len(f.Value) {
			a.t.Fatalf("%s: %q with %d values and %d times is not known, or came twice", what, f.Key.Unit, len(f.Value), len(f.Times))
		}
		got := map[string]fieldtest.Newest{}
		for name, at := range f.Times {
			got[name] = fieldtest.Newest{Time: at, Value: f.Value[name]}
		}
		if wrong := tally.Compare(got, want[i]); wrong != "" && tally.Wrong < 10 {
			a.t.Errorf("%s: %d: %s", what, i, wrong)
		}
		delete(want, i)
	}
	a.t.Logf("%s?%s: %d entities in %v: of %d fields %d are wrong, %d not found", what, query, len(found), took, tally.Compared, tally.Wrong, tally.Lacking)
	if len(want) > 0 || tally.Wrong+tally.Lacking > 0 {
		a.t.Errorf("%s: %d entities are not found, %d fields are wrong, %d not found", what, len(want), tally.Wrong, tally.Lacking)
	}
}

func (a *api) turnsEach(query string) (found []turnedFields) {
	for i := range *turnEntities {
		found = append(found, decode[turnedFields](a.t, a.get(fmt.Sprintf("/v1/turns/fields?unit=%d&%s", i, query)).body))
	}
	return found
}

func (a *api) turnsLists(query string) (found []turnedFields) {
	for first := 0; first < *turnEntities; first += maxKeys {
		var keys []map[string]string
		for i := first; i < min(first+maxKeys, *turnEntities); i++ {
			keys = append(keys, map[string]string{"unit": strconv.Itoa(i)})
		}
		body, err := json.Marshal(map[string]any{"keys": keys})
		if err != nil {
			a.t.Fatal(err)
		}
		got := decode[struct{ Answers []turnedFields }](a.t, a.do(http.MethodPost, "/v1/turns/fields?"+query, string(body)).body)
		found = append(found, got.Answers...)
	}
	return found
}

func (a *api) turnsLines(query string) (found []turnedFields) {
	got := a.get("/v1/turns/fields?"+query, "Accept: "+asLines)
	text, whole := strings.CutSuffix(got.body, `{"end":true}`+"\n")
	if !whole {
		a.t.Fatalf("the lines do not end: %d, %d bytes", got.StatusCode, len(got.body))
	}
	for line := range strings.Lines(text) {
		found = append(found, decode[turnedFields](a.t, line))
	}
	return found
}
