package retention

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
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Forecast says what the retention classes of a table hold, and what they will hold, as far as a sample of its rows shows.
// Each figure says how wide it is. It marshals to JSON; String is the same as text, in short. A Forecast is not changed by
// its methods, which may be called at once.
type Forecast struct {
	Version int       `json:"version"` // of this shape in JSON: 1
	Table   string    `json:"table"`
	At      time.Time `json:"at"` // by the store's clock
	Basis   Basis     `json:"basis"`
	Cost    Cost      `json:"cost"`
	Whole   Figures   `json:"whole"`
	// Classes are in the order of their names. Column families that are of no dataset in the catalogue stand among them under
	// their own names, without a policy.
	Classes []ClassFigures `json:"classes"`
	// Holdings are what each tenant that the sample met has of each dataset, kind of row and class, in that order. In a large table
	// small tenants may be missing; Unmet is about what they have together. Classes and Whole count it.
	Holdings []Holding `json:"holdings"`
	Unmet    Estimate  `json:"unmet"` // bytes
	// Kept says of each dataset with rollups, a line for each class in which points are written, how long points and rollups are
	// kept. The figures go by the policies of families alone: what workers delete earlier, by SchemaOptions.RollupAges, counts as
	// kept.
	Kept []string `json:"kept,omitempty"`

	sample *sample // nil for one that was read from JSON
}

// Basis is what the figures of a Forecast rest on.
type Basis string

const (
	// Counted: all rows were read. The figures of what is stored are exact; those of the future are not.
	Counted Basis = "counted"
	// Sampled: some rows were read, and the service's sizes of the table's parts gave them their weight.
	Sampled Basis = "sampled"
	// Assumed: as Sampled, but no part was small enough to be read to its end, so it was taken that the sizes which the service
	// tells are the bytes of keys, columns and values. Where it compresses, there is more: give ForecastOptions.Rows more.
	Assumed Basis = "assumed"
)

// Cost is what a forecast has taken.
type Cost struct {
	Requests int   `json:"requests"`
	Rows     int   `json:"rows"`  // that were read
	Bytes    int64 `json:"bytes"` // of their keys, columns and values
	// Parts is how many parts the service's samples cut the table into, Read of how many rows were read, and Finished how many of
	// them were read to their end.
	Parts    int `json:"parts"`
	Read     int `json:"read"`
	Finished int `json:"finished"`
}

// Estimate is a figure, and its standard error: about two times in three the truth is within Error of Value, and nearly
// always within three times that.
type Estimate struct {
	Value float64 `json:"value"`
	Error float64 `json:"error"`
}

// Figures are what some column families hold. Bytes are those of keys, column names and values, before the service
// compresses them. Cells are points, in the families of points and of heads.
type Figures struct {
	Bytes Estimate `json:"bytes"`
	Cells Estimate `json:"cells"`
	// ExpiredBytes and ExpiredCells are the part of them that has expired, by the catalogue's policy, and waits to be collected.
	ExpiredBytes Estimate `json:"expired_bytes"`
	ExpiredCells Estimate `json:"expired_cells"`
	// DayBytes and DayCells are what a day adds, by how many cells have timestamps within ForecastOptions.Window; those in the
	// future do not count. They are 0 for heads and marks, which replace what they hold.
	DayBytes Estimate `json:"day_bytes"`
	DayCells Estimate `json:"day_cells"`
	// Weeks are the bytes after one week, two weeks, and so on, if writes go on as they did, under the catalogue's policy, and
	// with all that has expired collected.
	Weeks []Estimate `json:"weeks"`
	// Steady are the bytes at which they no longer grow. Nil is never.
	Steady *Estimate `json:"steady,omitempty"`
	Ages   []Band    `json:"ages"`
}

// Band is what is of an age of at least From, and less than To; a To of zero has no end. What lies in the future is in
// the first.
type Band struct {
	From  time.Duration `json:"from"` // nanoseconds, in JSON
	To    time.Duration `json:"to,omitempty"`
	Bytes Estimate      `json:"bytes"`
	Cells Estimate      `json:"cells"`
}

// ClassFigures are what a retention class holds: its family, and those of the heads and rollups that are kept in it.
type ClassFigures struct {
	Class  string `json:"class"`
	Policy string `json:"policy,omitempty"` // the catalogue's, in the syntax of package gc
	Figures
}

// Holding is what a tenant has in the rows of one kind of one dataset, in one class. Rows that are of no dataset in the catalogue stand
// under the zero tenant.
type Holding struct {
	Tenant  tenant.ID `json:"tenant,omitzero"`
	Dataset string    `json:"dataset"`
	// Kind is empty for points, "head" for heads, and otherwise the reserved kind: "rollup.<name>", "mark.<name>".
	Kind  string `json:"kind,omitempty"`
	Class string `json:"class"`
	Figures
}

// ForecastOptions are what a forecast may take. The zero value is good.
type ForecastOptions struct {
	// Rows, Bytes and Requests bound what is read; a request may go over Bytes by one row. 0 is 200,000 rows, 256 MiB and 2,000
	// requests. Rows is at least 100. In memory it holds about 50 bytes a cell that was read, of which it reads at most 10 a row on average.
	Rows     int
	Bytes    int64
	Requests int
	// Weeks is how far it looks ahead, up to 520. 0 is 12.
	Weeks int
	// Window is the time before now by which the rate of writes is judged; at least an hour. 0 is 7 days. Where data is kept for
	// less, or is not that old yet, it is as long as that.
	Window time.Duration
	// Seed chooses which rows are read. With the same seed, rows, clock and samples of the service a forecast comes out the same.
	Seed uint64
}

func (o ForecastOptions) resolve() (_ ForecastOptions, err error) {
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
	o.Window = cmp.Or(o.Window, 7*day)
	if err == nil && (o.Window < time.Hour || o.Window > 3650*day) {
		err = invalid.New(tsdb.ErrInvalid, "Window", o.Window.String(), "0 for 7 days, or an hour to 3650 days")
	}
	return o, err
}

const day = 24 * time.Hour

// NewForecast reads a sample of a table's rows and says what its retention classes hold, how much of it has expired, and how
// it grows. It goes by the catalogue, so it needs no admin rights, and works on datasets that the program was not compiled
// with.
//
// The service cuts the table into parts and tells how many bytes each has, give or take 5%. Up to ForecastOptions.Rows rows are
// read, of parts that are spread over the table by chance; a table with fewer is read whole, and nothing is left to chance. Parts
// that are small enough are read to their ends, and larger ones here and there: of some entities, from some times on. How
// much a class or a large tenant has comes out within a few percent, how old it is less exactly, the more so the more alike
// the rows of a part are; what a small tenant has may be off by much. Each figure's Error says so. What the service holds
// in memory alone, written within the last minutes, may be missing in the sizes.
//
// The call is an operator's: it reads the rows of all tenants, past their authorized views and their limits, also of those that
// are erased, and fails with tsdb.ErrTenantMismatch where ctx carries one. It decodes no payload, and keeps no key of an entity.
// Where Rows, Bytes or Requests are spent before anything is read, or before all is of a table of which the service tells no
// sizes, as of one that is small, its error wraps tsdb.ErrInvalid.
//
// It is bounded by ctx, and each of its requests by the timeout of scans. On a store over a client without the store's
// interceptors it fails with tsdb.ErrUnguardedClient, as the sizes cannot be seen.
func NewForecast(ctx context.Context, store *tsdb.Store, opts ForecastOptions) (_ *Forecast, err error) {
	ctx, op := inside.Watch(store).Begin(ctx, telemetry.RetentionForecast, telemetry.Subject{})
	defer func() { op.End(err) }()
	if opts, err = opts.resolve(); err != nil {
		return nil, err
	}
	if have, ok := tenant.FromContext(ctx); ok {
		return nil, fmt.Errorf("%w: %s, the call is on all tenants", tsdb.ErrTenantMismatch, invalid.Quote(have.String()))
	}
	in, err := inside.OfStore(store)
	if err != nil {
		return nil, err
	}
	known, err := catalog.All(ctx, in.Table)
	if err != nil {
		return nil, in.Explain(err)
	}
	kept, err := keepings(known)
	if err != nil {
		return nil, err
	}
	s := &sample{store: in, opts: opts, kept: kept, now: in.Clock().UTC().Truncate(time.Millisecond)}
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	f := s.forecast()
	f.Kept = agesOf(known)
	return f, nil
}

// Drop is what a change of a class's policy would remove that the policy of now keeps.
type Drop struct {
	Class  string   `json:"class"`
	Policy string   `json:"policy"` // the one that was asked about
	Bytes  Estimate `json:"bytes"`
	Cells  Estimate `json:"cells"`
	// From are the holdings that would lose something.
	From []DropFrom `json:"from"`
}

// DropFrom is what one holding would lose.
type DropFrom struct {
	Tenant  tenant.ID `json:"tenant,omitzero"`
	Dataset string    `json:"dataset"`
	Kind    string    `json:"kind,omitempty"`
	Bytes   Estimate  `json:"bytes"`
	Cells   Estimate  `json:"cells"`
}

// Drops returns what another policy of a class would remove at the time of the forecast, beside what has expired already: of
// its points, and of the heads and rollups that are kept in it. A policy that keeps longer removes nothing. It reads nothing.
//
// Its error wraps tsdb.ErrInvalid for a class that the catalogue does not have, and on a forecast that was read from JSON,
// gc.ErrInvalid for a policy that is none, and gc.ErrVersions for one that counts versions.
func (f *Forecast) Drops(class string, policy gc.Policy) (Drop, error) {
	if _, _, err := policy.PointAge(); err != nil {
		return Drop{}, err
	}
	if f == nil || f.sample == nil {
		return Drop{}, invalid.New(tsdb.ErrInvalid, "forecast", "without its sample", "one from NewForecast")
	}
	if !f.sample.kept.has(class) {
		return Drop{}, invalid.New(tsdb.ErrInvalid, "class", invalid.Quote(class), "a retention class in the catalogue")
	}
	return f.sample.drops(class, policy), nil
}
