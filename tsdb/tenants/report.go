package tenants

import (
	"time"

	"github.com/tidemark-go/tidemark/tenant"
)

// State is how far an erasure is.
type State string

// The states of an erasure, in their order. The zero State is a tenant that is not erased.
const (
	// Marked: the mark is written, and stores are given time to honour it.
	Marked State = "marked"
	// Counting: nothing is written any more; what is there is counted.
	Counting State = "counting"
	// Deleting: what was counted is being deleted.
	Deleting State = "deleting"
	// Erased: nothing is left, which was looked at.
	Erased State = "erased"
	// Readmitted: the tenant was admitted again after its erasure.
	Readmitted State = "readmitted"
)

// Report says what was erased, in words and figures that can be shown to the customer. It marshals to JSON; String is the
// same as text.
type Report struct {
	Tenant tenant.ID `json:"tenant"`
	// Fields are the key fields of the entity that was erased; nil where the whole tenant was. They are not stored.
	Fields map[string]string `json:"fields,omitempty"`
	// Dataset is the only dataset that an entity was erased from; empty for all.
	Dataset string `json:"dataset,omitempty"`
	DryRun  bool   `json:"dry_run,omitempty"`
	State   State  `json:"state"`
	// By and Reason are those of the EraseOptions that the erasure was begun with.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Method is how rows were deleted: "pages" or "range".
	Method string `json:"method"`
	// Started is when the mark was written, Verified when it was last seen that nothing is left, Ended when the erasure ended,
	// and Until when the mark ends; zero is never. Times are those of the store's clock.
	Started  time.Time `json:"started,omitzero"`
	Verified time.Time `json:"verified,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Until    time.Time `json:"until,omitzero"`
	// Rows is what was there once nothing was written any more, Kinds the same by dataset and kind.
	Rows  int64     `json:"rows"`
	Kinds []Counted `json:"kinds"`
	// Profile says that the tenant's profile was there.
	Profile bool `json:"profile,omitempty"`
	// Late are rows that were found after the deletion, and deleted too.
	Late int64 `json:"late,omitempty"`
	// DeadLetters are those that were dropped from the writers of EraseOptions.
	DeadLetters int64 `json:"dead_letters,omitempty"`
	// Unreached lists what an erasure cannot reach, in whole sentences.
	Unreached []string `json:"unreached"`
}

// Counted are the rows of one kind of one dataset.
type Counted struct {
	Dataset string `json:"dataset"`        // empty for rows with the tenant's prefix that are none of any dataset
	Kind    string `json:"kind,omitempty"` // empty for points; "head", "rollup.<name>", …
	Rows    int64  `json:"rows"`
}

// String returns the report as text of several lines.
func (r Report) String() string { panic("to come") }
