package tenants

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// UsageReport is what a tenant has stored. It is also where to continue a count that was broken off: it survives JSON.
type UsageReport struct {
	Tenant tenant.ID      `json:"tenant"`
	Kinds  []DatasetUsage `json:"kinds"`
	// Complete says that all rows were counted.
	Complete bool `json:"complete"`
	// Next is the row key to go on from, for UsageOptions.Continue. It means nothing else.
	Next []byte `json:"next,omitempty"`
}

// DatasetUsage is what a tenant has stored in the rows of one kind of one dataset. What is stored is what is paid for: it
// includes expired points that have not been collected yet.
type DatasetUsage struct {
	// Dataset is the dataset's name; empty for rows with the tenant's prefix that are none of any dataset.
	Dataset string `json:"dataset"`
	// Kind is empty for points, "head" for heads, and otherwise the reserved kind: "rollup.<name>".
	Kind string `json:"kind,omitempty"`
	// Known says that the catalogue knows the dataset. Points, Entities, Newest and Oldest are zero where it does not.
	Known bool  `json:"known"`
	Rows  int64 `json:"rows"`
	// Points are the rows of points; of a dataset that keeps heads only, the points in the heads. 0 for other kinds.
	Points int64 `json:"points"`
	// Entities is exact for points and heads.
	Entities int64 `json:"entities"`
	// Bytes are those of keys, column names and values, before the service compresses them. Estimated says that they were
	// computed from a sample of the rows.
	Bytes     int64 `json:"bytes"`
	Estimated bool  `json:"estimated"`
	// Newest and Oldest are the times of points; zero where there are none.
	Newest time.Time `json:"newest,omitzero"`
	Oldest time.Time `json:"oldest,omitzero"`
}

// UsageOptions are what a count may decide. The zero value estimates the bytes.
type UsageOptions struct {
	// Exact reads all values to count their bytes, where otherwise 1 row in 100 is read and the others' keys alone.
	Exact bool
	// Continue goes on from a report that is not complete. Its Exact must have been the same.
	Continue *UsageReport
	// Progress is told after each page of rows, on the caller's goroutine. Nil is for nobody.
	Progress func(UsageReport)

	page int // rows; 0 for the default
}

// Usage counts what a tenant has stored, by the catalogue, in datasets that this program knows or does not. It reads the keys
// of all the tenant's rows, 10,000 at a time, so its cost grows with them, and holds one page in memory. Rows that are
// written or deleted while it runs may or may not be counted.
//
// It is bounded by ctx, and each page by the timeout of scans. Where it ends early, the report says how far it has come,
// beside the error, and UsageOptions.Continue goes on from there.
func Usage(ctx context.Context, store *tsdb.Store, id tenant.ID, opts UsageOptions) (_ UsageReport, err error) {
	ctx, op := inside.Watch(store).Begin(ctx, telemetry.TenantUsage, telemetry.Subject{Tenant: id.String()})
	defer func() { op.End(err) }()
	r, err := enterFor(ctx, store, id)
	if err != nil {
		return UsageReport{}, err
	}
	rng, err := rowkey.TenantRange(id)
	if err != nil {
		return UsageReport{}, err
	}
	rep := UsageReport{Tenant: id, Kinds: []DatasetUsage{}}
	if c := opts.Continue; c != nil {
		next := string(c.Next)
		if c.Tenant != id || next < rng.Start || next > rng.Limit {
			return UsageReport{}, invalid.New(ErrInvalid, "Continue", "the report of another tenant", "one of "+id.String()+" that is not complete")
		}
		rep = *c
		rep.Kinds, rng.Start = slices.Clone(c.Kinds), next
	}
	known, err := catalog.DatasetsOf(ctx, r.Table, r.Table, id)
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
