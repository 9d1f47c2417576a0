package retention_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestForgedPlans: an edited plan never deletes anything that is not allowed, and nothing panics.
func TestForgedPlans(t *testing.T) {
	testkit.Plain(t)
	stored := define(t, "readings", days("d90", 90), heads(2), choice(days("d7", 7)), hourly(days("d90", 90)))
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, stored)
	a := admin(t, conn)
	before := policies(t, a)
	text, err := json.Marshal(plan(t, store, define(t, "readings", days("d90", 30), heads(2), choice(days("d7", 6)), hourly(days("d90", 30)))))
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(8, 8))
	for range 3000 {
		var doc any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		forge(rnd, doc.(map[string]any))
		forged, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		p, err := retention.ReadPlan(strings.NewReader(string(forged)))
		if err != nil {
			continue
		}
		_, _, _, _ = p.String(), p.Items(), p.Destructive(), p.Drifted()
		rep, err := p.Apply(t.Context(), store, retention.ApplyOptions{})
		if now := policies(t, a); err == nil {
			for family, was := range before {
				if now[family] != was && now[family] != "" && !longer(now[family]) {
					t.Fatalf("%s was %s and is %s, after the plan\n%s\n%v", family, was, now[family], forged, rep)
				}
			}
			before = now
		} else if !maps.Equal(now, before) && len(rep.Applied) == 0 {
			t.Fatalf("error %v, and the table is %v, after the plan\n%s", err, now, forged)
		}
	}
}

// longer reports whether forge inserts this policy as one that keeps more than the others.
func longer(policy string) bool {
	return policy == "Never" || policy == "" || strings.Contains(policy, "1000000d")
}

// forge changes something anywhere in a plan.
func forge(rnd *rand.Rand, doc map[string]any) {
	keys := make([]string, 0, len(doc))
	for key := range doc {
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return
	}
	key := keys[rnd.IntN(len(keys))]
	values := []any{nil, "", "never", "maxage=1s", "maxage=1000000d", "d7", "_sys", 0, -1, int64(1) << 40, true, []any{}, map[string]any{}}
	switch v := doc[key].(type) {
	case map[string]any:
		if rnd.IntN(8) > 0 {
			forge(rnd, v)
			return
		}
	case []any:
		if len(v) > 0 && rnd.IntN(8) > 0 {
			i := rnd.IntN(len(v))
			if m, ok := v[i].(map[string]any); ok {
				forge(rnd, m)
				return
			}
			if rnd.IntN(2) == 0 {
				doc[key] = append(v, v[i])
				return
			}
			v[i] = values[rnd.IntN(len(values))]
			return
		}
	}
	if rnd.IntN(5) == 0 {
		delete(doc, key)
		return
	}
	doc[key] = values[rnd.IntN(len(values))]
}
