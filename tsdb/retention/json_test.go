package retention_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func TestReadPlanRefuses(t *testing.T) {
	good, err := os.ReadFile(filepath.Join("testdata", "tighten.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing":           "",
		"no JSON":           "Retention plan",
		"another document":  `{"format":"tidemark/profile","version":1}`,
		"a newer version":   strings.Replace(string(good), `"version": 1`, `"version": 2`, 1),
		"a member unknown":  strings.Replace(string(good), `"version": 1`, `"version": 1, "force": true`, 1),
		"a kind unknown":    strings.Replace(string(good), `"kind": "change"`, `"kind": "delete"`, 1),
		"two plans":         string(good) + string(good),
		"half a plan":       string(good[:len(good)/2]),
		"longer than bound": strings.Repeat(" ", 32<<20) + string(good),
	} {
		if p, err := retention.ReadPlan(strings.NewReader(text)); !errors.Is(err, tsdb.ErrInvalid) || p != nil {
			t.Errorf("%s: plan %v, error %v; want ErrInvalid", name, p, err)
		}
	}
	if _, err := json.Marshal(&retention.Plan{}); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("marshal a zero plan: %v, want ErrInvalid", err)
	}
}

// TestAForgedPlanDoesNoMore: Apply does not trust a file: deletions must be allowed, and datasets must be valid.
func TestAForgedPlanDoesNoMore(t *testing.T) {
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90)))
	a := admin(t, conn)
	doc, err := json.Marshal(plan(t, store, define(t, "readings", days("d90", 30))))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, old, new string
		want           error
	}{
		{"harmless by its own word", `"destructive":true`, `"destructive":false`, retention.ErrNotAllowed},
		{"of another table", `tables/tidemark"`, `tables/other"`, tsdb.ErrInvalid},
		{"a policy that is none", `"policy":"maxage=30d"`, `"policy":"maxage=0d"`, nil},
		{"a dataset that is none", `"name":"readings"`, `"name":"a#b"`, tsdb.ErrInvalid},
		{"another age", `"policy":"maxage=30d"`, `"policy":"maxage=3d"`, retention.ErrNotAllowed},
		{"of a table that was otherwise", `"d90":"maxage=90d"`, `"d90":"maxage=91d"`, retention.ErrStale},
	} {
		text := strings.Replace(string(doc), tt.old, tt.new, 1)
		if text == string(doc) {
			t.Fatalf("%s: the plan does not contain %s: %s", tt.name, tt.old, doc)
		}
		p, err := retention.ReadPlan(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		rep, err := p.Apply(t.Context(), store, retention.ApplyOptions{})
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: report %v, error %v; want %v", tt.name, rep, err, tt.want)
		}
	}
	if got := policies(t, a)["d90"]; got != "age() > 90d" {
		t.Errorf("d90 has %s", got)
	}
}

// TestDamagedPlans: applying a plan with damaged bytes does not panic and deletes nothing.
func TestDamagedPlans(t *testing.T) {
	testkit.Plain(t)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90), heads(2), hourly(days("d90", 90))))
	a := admin(t, conn)
	doc, err := json.Marshal(plan(t, store, define(t, "readings", days("d90", 30), heads(2), hourly(days("d90", 30)))))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 8))
	read := 0
	for range 25 * *rounds {
		damaged := bytes.Clone(doc)
		for range 1 + random.IntN(2) {
			damaged[random.IntN(len(damaged))] = "0123456789azdhm,:[]{}#\""[random.IntN(23)]
		}
		p, err := retention.ReadPlan(bytes.NewReader(damaged))
		if err != nil {
			continue
		}
		read++
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if rep, err := p.Apply(ctx, store, retention.ApplyOptions{}); err == nil {
			t.Errorf("%s\nwas applied: %v", damaged, rep)
		}
		cancel()
	}
	if got := policies(t, a)["d90"]; got != "age() > 90d" || read < *rounds/4 {
		t.Errorf("d90 has %s after %d plans", got, read)
	}
}

// FuzzReadPlan: a document is rejected, or is a plan whose text and JSON read back as the same plan.
func FuzzReadPlan(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(text) < 2000 { // small documents explore more in the same time
			f.Add(text)
		}
	}
	f.Add([]byte(`{"format":"tidemark/retention-plan","version":1}`))
	f.Add([]byte(`{"format":"tidemark/retention-plan","version":1,"table":"projects/local/instances/local/tables/tidemark","items":[{"kind":"create"}],"declared":[{"name":"readings","classes":[{}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := retention.ReadPlan(bytes.NewReader(text))
		if err != nil {
			if !errors.Is(err, tsdb.ErrInvalid) {
				t.Error(err)
			}
			return
		}
		doc, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := retention.ReadPlan(bytes.NewReader(doc))
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		if again.String() != p.String() || again.Empty() != p.Empty() {
			t.Errorf("plan %v is read back as %v", p, again)
		}
	})
}

// TestPlanOfEarlierVersion: a plan in a file of an earlier version is applied, also one that saw settings of the table.
// One that would change a setting is refused.
func TestPlanOfEarlierVersion(t *testing.T) {
	doc, err := os.ReadFile("testdata/earlier_version.json")
	if err != nil {
		t.Fatal(err)
	}
	with := func(text string) []byte { return bytes.Replace(doc, []byte(`"seen": {`), []byte(text), 1) }
	for _, plan := range [][]byte{doc, with(`"seen": {"settings": {"tiered storage": "none", "change stream": "kept for 3d"},`)} {
		d90 := days("d90", 90)
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", d90, heads(5), hourly(d90)), define(t, "events", d90))
		p, err := retention.ReadPlan(bytes.NewReader(plan))
		if err != nil {
			t.Fatal(err)
		}
		apply(t, store, p, p.Destructive()...)
		if got := policies(t, admin(t, conn))["d90"]; got != "age() > 30d" {
			t.Errorf("the family has %s", got)
		}
	}
	if _, err := retention.ReadPlan(bytes.NewReader(with(`"change_stream_s": 86400, "seen": {`))); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("ReadPlan of a change stream: %v, want ErrInvalid", err)
	}
}
