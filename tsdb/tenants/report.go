package tenants

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
)

// State is the state of an erasure. In order:
//
//   - "marked": the mark is written, and the call waits until all stores apply it.
//   - "counting": writes have stopped, and the call counts the rows.
//   - "deleting": the call deletes the counted rows.
//   - "verifying": the counted rows are deleted, and the call checks that no row is left.
//   - "erased": no row is left.
//   - "readmitted": the tenant was readmitted after its erasure.
//
// The zero State is that of a tenant that is not erased.
type State string

// The states by which programs report progress and the end. The number of rows is known from Deleting on.
const (
	Deleting State = "deleting"
	Erased   State = "erased"
)

const (
	marked     State = "marked"
	counting   State = "counting"
	verifying  State = "verifying"
	readmitted State = "readmitted"
)

// Report describes an erasure in words and figures that can be shown to the customer. It marshals to JSON; String
// returns it as text.
type Report struct {
	Tenant tenant.ID `json:"tenant"`
	// Fields are the key fields of the erased entity; nil if the whole tenant was erased. They are not stored.
	Fields map[string]string `json:"fields,omitempty"`
	// Dataset is the only dataset from which an entity was erased; empty for all.
	Dataset string `json:"dataset,omitempty"`
	DryRun  bool   `json:"dry_run,omitempty"`
	State   State  `json:"state"`
	// By and Reason are the EraseOptions of the call that began the erasure.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Method is how rows were deleted: "pages" or "range".
	Method string `json:"method"`
	// Started is when the mark was written. Verified is when the last check found no rows. Ended is when the erasure
	// ended. Until is when the mark ends; zero is never. Times are those of the store's clock.
	Started  time.Time `json:"started,omitzero"`
	Verified time.Time `json:"verified,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Until    time.Time `json:"until,omitzero"`
	// Rows is how many rows there were after writes had stopped. Kinds has the same by dataset and kind.
	Rows  int64     `json:"rows"`
	Kinds []Counted `json:"kinds"`
	// Profile says that the tenant had a profile.
	Profile bool `json:"profile,omitempty"`
	// Late is how many more rows were found after the deletion, and deleted too.
	Late int64 `json:"late,omitempty"`
	// DeadLetters is how many dead letters were dropped from the writers in EraseOptions.
	DeadLetters int64 `json:"dead_letters,omitempty"`
	// Journals is how many journals of the writers in EraseOptions were rewritten: they no longer contain anything
	// that was delivered or dropped before. Unreached describes other journals.
	Journals int64 `json:"journals,omitempty"`
	// Unreached lists what an erasure cannot delete, in whole sentences.
	Unreached []string `json:"unreached"`
}

// Counted is the number of rows of one kind of one dataset.
type Counted struct {
	Dataset string `json:"dataset"`        // empty for rows with the tenant's prefix that belong to no dataset
	Kind    string `json:"kind,omitempty"` // empty for points; "head", "rollup.<name>", …
	Rows    int64  `json:"rows"`
}

// String returns the report as text of several lines.
func (r Report) String() string {
	var b reportText
	what := "everything of tenant " + r.Tenant.String()
	if r.Fields != nil {
		what = "one entity of tenant " + r.Tenant.String() + ":"
		for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
			what += fmt.Sprintf(" %s=%q", name, r.Fields[name])
		}
		if r.Dataset != "" {
			what += " in dataset " + r.Dataset
		}
	}
	b.line("Erasure of", what)
	b.state(r.DryRun, string(r.State))
	b.texts(r.By, r.Reason)
	for _, t := range []struct {
		name string
		at   time.Time
	}{{"Begun", r.Started}, {"Verified", r.Verified}, {"Ended", r.Ended}, {"Mark until", r.Until}} {
		if !t.at.IsZero() {
			b.line(t.name, t.at.UTC().Format(time.RFC3339))
		}
	}
	b.rows(r.Rows, r.Kinds)
	b.some("Came late", "%d rows, deleted too", r.Late)
	b.some("Dead letters", "%d", r.DeadLetters)
	b.some("Journals", "%d written anew, without what was delivered or dropped", r.Journals)
	if r.Profile {
		b.line("Profile", "deleted")
	}
	b.WriteString("Not reached by this erasure:\n")
	for _, s := range r.Unreached {
		fmt.Fprintf(&b, "  - %s\n", s)
	}
	return b.String()
}

// reportText is a report as text of several lines.
type reportText struct{ strings.Builder }

func (b *reportText) line(name, text string) { fmt.Fprintf(b, "%-14s%s\n", name+":", text) }

// some adds a line with a number that is not zero.
func (b *reportText) some(name, format string, n int64) {
	if n > 0 {
		b.line(name, fmt.Sprintf(format, n))
	}
}

func (b *reportText) state(dryRun bool, state string) {
	if dryRun {
		state = "counted only, nothing was changed"
	}
	b.line("State", state)
}

func (b *reportText) texts(by, reason string) {
	for _, t := range []struct{ name, text string }{{"Asked for by", by}, {"Reason", reason}} {
		if t.text != "" {
			b.line(t.name, t.text)
		}
	}
}

func (b *reportText) rows(rows int64, kinds []Counted) {
	b.line("Rows", strconv.FormatInt(rows, 10))
	for _, k := range kinds {
		fmt.Fprintf(b, "  %s\n", k.text())
	}
}

// text returns dataset, kind and rows in one line.
func (c Counted) text() string {
	name := "dataset " + c.Dataset
	switch {
	case c.Dataset == "":
		name = "other rows of the tenant"
	case c.Kind == "":
		name += ", points"
	default:
		name += ", " + c.Kind
	}
	return fmt.Sprintf("%s: %d", name, c.Rows)
}

// unreached returns what no erasure can delete.
func (r *Report) unreached() []string {
	out := []string{
		"Backups of the table, and the snapshots that the service keeps for recovery, until they expire.",
		"Exported files, and copies that other programs made.",
		"Journals of programs that are not running. When such a program starts, it drops the erased points, even after a readmission, and rewrites its files.",
		"Journals of running programs that this report does not count, until their next delivery attempt. Within a minute after it, they rewrite their files without the delivered and dropped points.",
		"Disk blocks of the files that journals have replaced, until the file system reuses them.",
		"Deleted cells that the service has not yet garbage-collected, in each of its clusters. They cannot be read.",
		"Clusters of a replicated instance that lag behind: their stores may see the mark, and delete, later.",
		"Writers that do not check the mark: other programs, and versions of this module without erasure.",
		"Tenant names and keys in the logs and metrics of services and programs.",
	}
	if r.Fields != nil {
		out = append(out, "Sums over several entities: the part of the erased entity cannot be subtracted.")
	} else {
		out = append(out, "The mark itself, which contains the tenant's name and this report, but no data.")
	}
	return out
}
