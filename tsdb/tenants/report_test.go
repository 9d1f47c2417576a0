package tenants_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestTheReportSaysIt: the text names everything that a customer asks for, and JSON keeps all of it.
func TestTheReportSaysIt(t *testing.T) {
	rep := tenants.Report{
		Tenant: acme, State: tenants.Erased, By: "an operator", Reason: "the customer left", Method: "pages",
		Started: start, Verified: start.Add(time.Hour), Ended: start.Add(time.Hour),
		Rows: 15, Kinds: []tenants.Counted{{Rows: 1}, {Dataset: "readings", Rows: 12}, {Dataset: "readings", Kind: "rollup.hour", Rows: 2}},
		Profile: true, Late: 1, DeadLetters: 2, Unreached: []string{"Backups."},
	}
	want := `Erasure of:   everything of tenant acme
State:        erased
Asked for by: an operator
Reason:       the customer left
Begun:        2026-01-01T00:00:00Z
Verified:     2026-01-01T01:00:00Z
Ended:        2026-01-01T01:00:00Z
Rows:         15
  other rows of the tenant: 1
  dataset readings, points: 12
  dataset readings, rollup.hour: 2
Came late:    1 rows, deleted too
Dead letters: 2
Profile:      deleted
Not reached by this erasure:
  - Backups.
`
	if got := rep.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	text, err := json.Marshal(rep)
	var back tenants.Report
	if err != nil || json.Unmarshal(text, &back) != nil || back.String() != want {
		t.Errorf("JSON %s, error %v", text, err)
	}
	rep.Fields, rep.Dataset = map[string]string{"site": "a", "device": "b"}, "readings"
	if got := rep.String(); !strings.Contains(got, `one entity of tenant acme: device="b" site="a" in dataset readings`) {
		t.Errorf("got\n%s", got)
	}
}

// TestRowsThatKeepComing: an erasure never reports that nothing is left if a program still writes rows.
func TestRowsThatKeepComing(t *testing.T) {
	f, store, conn, table := open(t, tsdbtest.Options{})
	f.fill(t, store, acme)
	n := 0
	conn.Inject(tsdbtest.DelayBy(func() time.Duration {
		n++
		if err := table.Apply(t.Context(), fmt.Sprintf("acme#readings#late#x#%019d", n), newCell()); err != nil {
			t.Error(err)
		}
		return 0
	}).On(tsdbtest.ReadRows))
	rep, err := tenants.Erase(t.Context(), store, acme, quick)
	if !errors.Is(err, errtype.ErrRemains) || rep.State != "verifying" || !rep.Ended.IsZero() {
		t.Errorf("report %+v, error %v", rep, err)
	}
	conn.Clear()
	if err := tenants.Readmit(t.Context(), store, acme); !errors.Is(err, errtype.ErrErasing) {
		t.Errorf("Readmit: %v", err)
	}
	if rep, err = tenants.Erase(t.Context(), store, acme, quick); err != nil || rep.State != tenants.Erased || rep.Late == 0 {
		t.Errorf("report %+v, error %v", rep, err)
	}
}
