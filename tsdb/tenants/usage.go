package tenants

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// UsageReport is a tenant's storage. An incomplete report is also the state from which to continue the count, also
// after JSON.
type UsageReport struct {
	Tenant tenant.ID      `json:"tenant"`
	Kinds  []DatasetUsage `json:"kinds"`
	// Complete says that all rows were counted.
	Complete bool `json:"complete"`
	// Next is the row key for UsageOptions.Continue. It has no other meaning.
	Next []byte `json:"next,omitempty"`
}

// DatasetUsage is a tenant's storage in the rows of one kind of one dataset. Storage is what the service bills: it
// includes expired points that have not been collected yet.
type DatasetUsage struct {
	// Dataset is the dataset's name; empty for rows with the tenant's prefix that belong to no dataset.
	Dataset string `json:"dataset"`
	// Kind is empty for points, "head" for heads, and otherwise the reserved kind: "rollup.<name>".
	Kind string `json:"kind,omitempty"`
	// Known says that the catalogue has the dataset. If not, Points, Entities, Newest and Oldest are zero.
	Known bool  `json:"known"`
	Rows  int64 `json:"rows"`
	// Points is the number of rows of points; for a dataset that stores only heads, the points in the heads. 0 for
	// other kinds.
	Points int64 `json:"points"`
	// Entities is exact for points and heads.
	Entities int64 `json:"entities"`
	// Bytes counts keys, column names and values, before the service compresses them. Estimated says that it was
	// computed from a sample of the rows.
	Bytes     int64 `json:"bytes"`
	Estimated bool  `json:"estimated"`
	// Newest and Oldest are times of points; zero if there are none.
	Newest time.Time `json:"newest,omitzero"`
	Oldest time.Time `json:"oldest,omitzero"`
}

// plainUsage is a DatasetUsage without methods.
type plainUsage DatasetUsage

type usageJSON struct {
	plainUsage
	Newest instant.Time `json:"newest,omitzero"`
	Oldest instant.Time `json:"oldest,omitzero"`
}

// MarshalJSON implements json.Marshaler.
func (u DatasetUsage) MarshalJSON() ([]byte, error) {
	return json.Marshal(usageJSON{plainUsage(u), instant.Time{Time: u.Newest}, instant.Time{Time: u.Oldest}})
}

// UnmarshalJSON implements json.Unmarshaler.
func (u *DatasetUsage) UnmarshalJSON(data []byte) error {
	if u == nil {
		return invalid.New(tsdb.ErrInvalid, "usage", "nil", "a pointer to a DatasetUsage")
	}
	from := usageJSON{plainUsage(*u), instant.Time{Time: u.Newest}, instant.Time{Time: u.Oldest}}
	err := json.Unmarshal(data, &from)
	*u = DatasetUsage(from.plainUsage)
	u.Newest, u.Oldest = from.Newest.Time, from.Oldest.Time
	return err
}

// UsageOptions configure a count. The zero value estimates the bytes.
type UsageOptions struct {
	// Exact reads all values to count their bytes. Without it, Usage reads 1 row in 100, and only the keys of the
	// others.
	Exact bool
	// Continue continues an incomplete report. Exact must be the same as for that report.
	Continue *UsageReport
	// Progress is called after each page of rows, on the caller's goroutine. Nil disables it.
	Progress func(UsageReport)

	page int // rows; 0 for the default
}

// Usage counts a tenant's storage with the catalogue, in datasets that this program knows or not. It reads the keys
// of all the tenant's rows, 10,000 at a time, and holds one page in memory. Rows that are written or deleted during
// the call may or may not be counted.
//
// Usage is bounded by ctx, and each page by the scan timeout. If it ends early, it returns an incomplete report with
// the error, and UsageOptions.Continue continues from there.
func Usage(ctx context.Context, store *tsdb.Store, id tenant.ID, opts UsageOptions) (_ UsageReport, err error) {
	ctx, r, end, err := enterFor(ctx, store, telemetry.TenantUsage, id)
	defer func() { end(err) }()
	if err != nil {
		return UsageReport{}, err
	}
	rng, err := rowkey.TenantRange(id)
	if err != nil {
		return UsageReport{}, err
	}
	rep := UsageReport{Tenant: id, Kinds: []DatasetUsage{}, Next: []byte(rng.Start)}
	if c := opts.Continue; c != nil {
		next := string(c.Next)
		if c.Tenant != id || next < rng.Start || next > rng.Limit {
			return UsageReport{}, invalid.New(tsdb.ErrInvalid, "Continue", "a complete report, or one of another tenant", "an incomplete report of "+id.String())
		}
		rep = *c
		rep.Kinds, rng.Start = slices.Clone(c.Kinds), next
	}
	known, err := catalog.DatasetsOf(ctx, r.Whole, r.Whole, id)
	if err != nil {
		return rep, r.Explain(err)
	}
	c := census{room: r, rep: rep, exact: opts.Exact, most: countPage, datasets: map[string]counted{}}
	if c.most = cmp.Or(opts.page, countPage); opts.Continue != nil {
		c.last = strings.TrimSuffix(rng.Start, "\x00")
	}
	for _, d := range known {
		if err := c.know(id, d); err != nil {
			return rep, err
		}
	}
	for !rng.Empty() {
		next, err := c.page(ctx, rng)
		if err != nil {
			return c.rep, err
		}
		rng = next
		c.rep.Next = []byte(rng.Start)
		if opts.Progress != nil {
			shown := c.rep
			shown.Kinds = slices.Clone(shown.Kinds)
			opts.Progress(shown)
		}
	}
	c.rep.Next, c.rep.Complete = nil, true
	return c.rep, nil
}
