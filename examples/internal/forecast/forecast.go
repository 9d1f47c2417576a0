// Package forecast estimates what the retention classes of a table hold now and will hold.
package forecast

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Forecast estimates what the retention classes of a table hold now and will hold, from a sample of its rows: the sizes
// that the service reports, times the shares that cells have in the sample. A Forecast marshals to JSON; String is a
// shorter form as text. It is immutable and safe for concurrent use.
type Forecast struct {
	Version int       `json:"version"` // of this shape in JSON: 2
	Table   string    `json:"table"`
	At      time.Time `json:"at"` // by the store's clock
	Basis   Basis     `json:"basis"`
	Cost    Cost      `json:"cost"`
	Whole   Figures   `json:"whole"`
	// Classes are sorted by name. They include column families that belong to no dataset in the catalogue, under their
	// own names and without a policy.
	Classes []ClassFigures `json:"classes"`
	// Holdings has an element for each tenant in the sample and each of its datasets, kinds of row and classes, in that
	// order. In a large table small tenants may be missing.
	Holdings []Holding `json:"holdings"`
	// Kept says how long points and rollups are kept: one line for each dataset with rollups and each class of its
	// points. The figures use only the families' policies. They count data as kept that workers delete earlier by
	// SchemaOptions.RollupAges.
	Kept []string `json:"kept,omitempty"`

	sample *sample // nil if read from JSON
}

// Basis is how a Forecast got its figures: Counted, Sampled or Assumed.
type Basis string

const (
	// Counted: all rows were read. The figures of what is stored are exact; those of the future are not.
	Counted Basis = "counted"
	// Sampled: some rows were read, and the service's sizes of the table's parts gave them their weight.
	Sampled Basis = "sampled"
	// Assumed: as Sampled, but no part was small enough to be read to its end. The forecast then assumes that the
	// service's sizes are the bytes of keys, columns and values. If the service compresses, there is more: increase
	// Options.Rows.
	Assumed Basis = "assumed"
)

// Cost is what a forecast read.
type Cost struct {
	Requests int   `json:"requests"`
	Rows     int   `json:"rows"`  // rows read
	Bytes    int64 `json:"bytes"` // of their keys, columns and values
	// Parts is how many parts the service's samples divide the table into, Read how many of them were read at least in
	// part, and Finished how many were read to their end.
	Parts    int `json:"parts"`
	Read     int `json:"read"`
	Finished int `json:"finished"`
}

// Figures are the sizes of some column families. Bytes count keys, column names and values, before the service
// compresses them. In families of points and of heads, cells are points.
type Figures struct {
	Bytes float64 `json:"bytes"`
	Cells float64 `json:"cells"`
	// ExpiredBytes and ExpiredCells are the part that has expired by the catalogue's policy but is not yet collected.
	ExpiredBytes float64 `json:"expired_bytes"`
	ExpiredCells float64 `json:"expired_cells"`
	// DayBytes and DayCells are what a day adds, computed from the cells with timestamps within the last week, and not
	// in the future. They are 0 for heads and marks, whose cells are replaced.
	DayBytes float64 `json:"day_bytes"`
	DayCells float64 `json:"day_cells"`
	// Weeks are the bytes after one week, two weeks, and so on, if writes continue at the same rate, under the
	// catalogue's policy, and if everything expired is collected.
	Weeks []float64 `json:"weeks"`
	// Steady is the size at which the bytes stop growing, or nil if they never do.
	Steady *float64 `json:"steady,omitempty"`
}

// ClassFigures are the figures of a retention class: its family, and the families of its heads and rollups.
type ClassFigures struct {
	Class  string `json:"class"`
	Policy string `json:"policy,omitempty"` // the catalogue's, in the syntax of package gc
	Figures
}

// Holding is a tenant's data in the rows of one kind of one dataset, in one class. Rows of no dataset in the
// catalogue have the zero tenant.
type Holding struct {
	Tenant  tenant.ID `json:"tenant,omitzero"`
	Dataset string    `json:"dataset"`
	// Kind is empty for points, "head" for heads, and otherwise the reserved kind: "rollup.<name>", "mark.<name>".
	Kind  string `json:"kind,omitempty"`
	Class string `json:"class"`
	Figures
}

// Options bound what a forecast reads. The zero value has the documented defaults.
type Options struct {
	// Rows, Bytes and Requests bound what New reads; a request may exceed Bytes by one row. 0 is 200,000
	// rows, 256 MiB and 2,000 requests. Rows is at least 100. New reads at most 10 cells a row on average.
	Rows     int
	Bytes    int64
	Requests int
	// Weeks is how many weeks the forecast covers, up to 520. 0 is 12.
	Weeks int
	// Seed chooses which rows are read. The same seed, rows, clock and samples of the service give the same forecast.
	Seed uint64
}

func (o Options) resolve() (_ Options, err error) {
	within := func(name string, value, zero, least, greatest int64, want string) int64 {
		value = cmp.Or(value, zero)
		if err == nil && (value < least || value > greatest) {
			err = invalid.New(tsdb.ErrInvalid, name, strconv.FormatInt(value, 10), want)
		}
		return value
	}
	o.Rows = int(within("Rows", int64(o.Rows), 200_000, 100, 100_000_000, "0 for 200,000, or 100 to 100,000,000"))
	o.Bytes = within("Bytes", o.Bytes, 256<<20, 1<<10, 1<<40, "0 for 256 MiB, or 1 KiB to 1 TiB")
	o.Requests = int(within("Requests", int64(o.Requests), 2000, 1, 1_000_000, "0 for 2,000, or 1 to 1,000,000"))
	o.Weeks = int(within("Weeks", int64(o.Weeks), 12, 1, 520, "0 for 12, or 1 to 520"))
	return o, err
}

const day = 24 * time.Hour

// New reads a sample of a table's rows and estimates what its retention classes hold, how much of that has expired, and
// how it grows. It uses the catalogue, so it needs no admin rights, and works on datasets that the program was not
// compiled with.
//
// The service divides the table into parts and reports the size of each, to within 5%. New reads random parts to their
// ends, up to Options.Rows rows; it reads a smaller table whole, and the figures are then exact. If parts are too large
// for that, it looks at random entities and times of each tenant in them. The size of a class or of a large tenant is
// then a good estimate; that of a small tenant may be far off. What was written within the last minutes may be missing
// in the sizes, while the service has it in memory only.
//
// The call is an operator's. It reads the rows of all tenants, erased ones too, and ignores their authorized views and
// limits. It fails with tsdb.ErrTenantMismatch if ctx carries a tenant. It decodes no payload, and stores no key of an
// entity. Its error wraps tsdb.ErrInvalid if Rows, Bytes or Requests do not suffice to read anything, or to read the
// whole of a table for which the service reports no sizes, such as a small one.
//
// It is bounded by ctx, and each of its requests by the timeout of scans. It takes samples with the app profile
// tsdb.Config.BulkAppProfile. On a store over a client without the store's
// interceptors it fails, because it cannot see the sizes.
func New(ctx context.Context, store *tsdb.Store, opts Options) (_ *Forecast, err error) {
	if opts, err = opts.resolve(); err != nil {
		return nil, err
	}
	if have, ok := tenant.FromContext(ctx); ok {
		return nil, fmt.Errorf("%w: %s, the call is on all tenants", tsdb.ErrTenantMismatch, invalid.Quote(have.String()))
	}
	in, err := inside.Of(store).Internals()
	if err != nil {
		return nil, err
	}
	kept, identity, ages := kept{"": {}}, map[string]bool{}, []string(nil)
	for d, err := range catalog.Each(ctx, in.Whole) {
		if err != nil {
			return nil, in.Explain(err)
		}
		if err := kept.addDataset(d.Dataset); err != nil {
			return nil, err
		}
		if _, with, err := rowkey.ParseTimeName(d.Precision); err == nil && with {
			identity[d.Name] = true
		}
		ages = append(ages, d.Kept()...)
	}
	s := &sample{store: in, opts: opts, kept: kept, identity: identity, groups: map[rowkey.Group]*rowkey.Group{}, now: in.Clock().UTC().Truncate(time.Millisecond)}
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	f := s.forecast()
	f.Kept = ages
	return f, nil
}

// Drop is what another policy of a class would remove and the current policy keeps.
type Drop struct {
	Class  string  `json:"class"`
	Policy string  `json:"policy"` // the other policy
	Basis  Basis   `json:"basis"`  // of the forecast
	Bytes  float64 `json:"bytes"`
	Cells  float64 `json:"cells"`
	// From are the holdings that would lose something.
	From []DropFrom `json:"from"`
}

// DropFrom is what one holding would lose.
type DropFrom struct {
	Tenant  tenant.ID `json:"tenant,omitzero"`
	Dataset string    `json:"dataset"`
	Kind    string    `json:"kind,omitempty"`
	Bytes   float64   `json:"bytes"`
	Cells   float64   `json:"cells"`
}

// Drops returns what another policy of a class would remove at the time of the forecast, without what has already
// expired: of the class's points, heads and rollups. A policy that keeps longer removes nothing. Drops does no I/O.
//
// Its error wraps tsdb.ErrInvalid for a class that the catalogue does not have, and on a forecast that was read from
// JSON; and it fails for an invalid policy, or one that counts versions.
func (f *Forecast) Drops(class string, policy gc.Policy) (Drop, error) {
	if _, _, err := policy.PointAge(); err != nil {
		return Drop{}, err
	}
	if f == nil || f.sample == nil {
		return Drop{}, invalid.New(tsdb.ErrInvalid, "forecast", "without its sample", "a forecast from New")
	}
	if !f.sample.kept.has(class) {
		return Drop{}, invalid.New(tsdb.ErrInvalid, "class", invalid.Quote(class), "a retention class in the catalogue")
	}
	return f.sample.drops(class, policy), nil
}
