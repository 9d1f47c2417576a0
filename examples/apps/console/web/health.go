package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/forecast"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

const (
	// storageFor is how long the forecast and the plan of the whole table are shown before they are made again. Both
	// are shared by all users.
	storageFor = 5 * time.Minute
	// emptyEvery is how often pages ask for the storage of a table without rows, which is read each time.
	emptyEvery = 5 * time.Second
	// forecastRows, forecastBytes and forecastRequests bound what the forecast reads.
	forecastRows     = 20_000
	forecastBytes    = 32 << 20
	forecastRequests = 200
	// maxTenantRows is how many tenants the operator's pages list.
	maxTenantRows = 500
	// listFor is how long the list of tenants and their limits is shown.
	listFor = time.Minute
)

// health answers with the tenant's own traffic, limits and retention.
func (s *Console) health(w http.ResponseWriter, r request) error {
	f, err := s.meter.now(r.Context())
	if err != nil {
		return err
	}
	own, err := s.catalog.of(r.Context(), r.tenant)
	if err != nil {
		return err
	}
	ctx := operatorContext(r.Context())
	kept, err := tenants.KeptFor(ctx, s.Store, r.tenant)
	if err != nil {
		return err
	}
	out := struct {
		Now      float64        `json:"now"`
		Every    float64        `json:"every_ms"`
		Seconds  float64        `json:"seconds,omitempty"`
		Measured bool           `json:"measured"` // whether this process has metrics
		Traffic  *traffic       `json:"traffic"`  // nil: the process that writes has it
		Limits   *limit.Limits  `json:"limits"`   // nil: the process that applies them has them
		Kept     []tenants.Kept `json:"kept"`
	}{Now: millis(time.Now()), Every: figuresFor.Seconds() * 1000, Measured: f != nil, Kept: []tenants.Kept{}}
	if t, ok := f.of(r.tenant.String()); ok {
		out.Traffic, out.Seconds = &t, f.Seconds
	}
	if out.Limits, err = s.limitsOf(ctx, r.tenant); err != nil {
		return err
	}
	for _, k := range kept {
		if slices.ContainsFunc(own, func(d *dataset) bool { return d.described.Name == k.Dataset }) { // the others' names are not shown
			out.Kept = append(out.Kept, k)
		}
	}
	return encode(w, out)
}

// limitsOf returns a tenant's limits: those that this process applies, or those of its profile. It returns nil if there
// are none to be seen here.
func (s *Console) limitsOf(ctx context.Context, id tenant.ID) (*limit.Limits, error) {
	if s.Limits != nil {
		l := s.Limits.Limits(id)
		return &l, nil
	}
	profile, err := tenants.Load(ctx, s.Store, id)
	if err != nil || len(profile.Limits) == 0 {
		if errors.Is(err, tsdb.ErrNotFound) {
			err = nil
		}
		return nil, err
	}
	var l limit.Limits
	if err := json.Unmarshal(profile.Limits, &l); err != nil {
		return nil, err
	}
	return &l, nil
}

// storage answers with what the tenant's rows take.
func (s *Console) storage(w http.ResponseWriter, r request) error {
	table, err := s.table.get(r.Context())
	if err != nil {
		return err
	}
	counted, err := s.counts.of(r.tenant, keepCount, func(ctx context.Context) (*tenants.UsageReport, error) { return s.count(ctx, r.tenant) }).get(r.Context())
	if err != nil {
		return err
	}
	out := struct {
		At       float64                `json:"at"`
		Every    float64                `json:"every_ms"`
		Holdings []forecast.Holding     `json:"holdings"`
		Counted  []tenants.DatasetUsage `json:"counted"`
		Next     string                 `json:"next,omitempty"` // the dataset and kind in which the count ended
		Failed   bool                   `json:"failed,omitempty"`
	}{At: millis(table.at), Every: table.every(), Holdings: []forecast.Holding{}, Counted: counted.Kinds, Failed: table.forecast == nil}
	if dataset, kind, ok := rowkey.KindOf(string(counted.Next)); ok {
		out.Next = strings.TrimSuffix(dataset+" "+kind, " ")
	}
	if table.forecast != nil {
		for _, h := range table.forecast.Holdings {
			if h.Tenant == r.tenant {
				out.Holdings = append(out.Holdings, h)
			}
		}
	}
	return encode(w, out)
}

// count counts the first page of a tenant's rows, 10,000, and also their bytes if these are all rows and not large.
func (s *Console) count(ctx context.Context, id tenant.ID) (*tenants.UsageReport, error) {
	all := operatorContext(ctx)
	ctx, stop := context.WithCancel(all)
	defer stop()
	counted, err := tenants.Usage(ctx, s.Store, id, tenants.UsageOptions{Progress: func(tenants.UsageReport) { stop() }})
	if err != nil && counted.Next == nil {
		return nil, err
	}
	size := int64(0)
	for _, u := range counted.Kinds {
		size += u.Bytes
	}
	if counted.Complete && size <= forecastBytes {
		counted, err = tenants.Usage(all, s.Store, id, tenants.UsageOptions{Exact: true})
		return &counted, err
	}
	return &counted, nil
}

// keepCount says how long a count is shown: that of a tenant without rows is read again.
func keepCount(u *tenants.UsageReport) time.Duration {
	if len(u.Kinds) == 0 {
		return 0
	}
	return storageFor
}

// tableState is what the operator sees of the whole table.
type tableState struct {
	at       time.Time
	forecast *forecast.Forecast // nil if it failed
	plan     *retention.Plan    // nil if it failed
	why      error              // why one of them failed
}

// keep says how long the state is shown: that of a table without rows is read again, so that the first rows are shown
// at once.
func (t *tableState) keep() time.Duration {
	if t.forecast != nil && t.forecast.Cost.Rows == 0 {
		return 0
	}
	return storageFor
}

// every is how often pages ask for the state.
func (t *tableState) every() float64 { return cmp.Or(t.keep(), emptyEvery).Seconds() * 1000 }

func (s *Console) readTable(ctx context.Context) (*tableState, error) {
	ctx = operatorContext(ctx)
	t := &tableState{at: time.Now()}
	var planErr, forecastErr error
	t.plan, planErr = retention.NewPlanFor(ctx, s.Store, nil)
	t.forecast, forecastErr = forecast.New(ctx, s.Store, forecast.Options{
		Rows: forecastRows, Bytes: forecastBytes, Requests: forecastRequests,
	})
	t.why = errors.Join(planErr, forecastErr)
	if ctx.Err() != nil { // the next request tries again
		return nil, t.why
	}
	return t, nil
}

// tableHealth answers with the figures of this process: writers, journal, rollups and what the tenants do.
func (s *Console) tableHealth(w http.ResponseWriter, r request) error {
	f, err := s.meter.now(r.Context())
	if err != nil {
		return err
	}
	list, err := s.everyone.get(r.Context())
	if err != nil {
		return err
	}
	return encode(w, struct {
		Now     float64        `json:"now"`
		Every   float64        `json:"every_ms"`
		Figures *figures       `json:"figures"` // nil: this process has no metrics
		Tenants []tenantLimits `json:"tenants"`
		More    bool           `json:"more"` // there are more tenants
	}{millis(time.Now()), figuresFor.Seconds() * 1000, f, list.tenants, list.more})
}

// tenantLimits is a tenant in the operator's list.
type tenantLimits struct {
	Tenant tenant.ID     `json:"tenant"`
	Erased bool          `json:"erased,omitempty"`
	Limits *limit.Limits `json:"limits"`
}

// everyone is the tenants of the table.
type everyone struct {
	tenants []tenantLimits
	more    bool
}

// keep says how long the list is shown: an empty one is read again, so that the first tenant is shown at once.
func (e *everyone) keep() time.Duration {
	if len(e.tenants) == 0 {
		return 0
	}
	return listFor
}

func (s *Console) readEveryone(ctx context.Context) (*everyone, error) {
	ctx = operatorContext(ctx)
	out := &everyone{tenants: []tenantLimits{}}
	for t, err := range tenants.List(ctx, s.Store, tenants.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		if out.more = len(out.tenants) == maxTenantRows; out.more {
			break
		}
		one := tenantLimits{Tenant: t.ID, Erased: t.Erased != ""}
		if s.Limits != nil {
			l := s.Limits.Limits(t.ID)
			one.Limits = &l
		}
		out.tenants = append(out.tenants, one)
	}
	return out, nil
}

// tableStorage answers with the plan and the forecast of the whole table.
func (s *Console) tableStorage(w http.ResponseWriter, r request) error {
	table, err := s.table.get(r.Context())
	if err != nil {
		return err
	}
	out := struct {
		At       float64            `json:"at"`
		Every    float64            `json:"every_ms"`
		Drifted  bool               `json:"drifted"`
		Items    []retention.Item   `json:"items"`    // nil if there is no plan
		Forecast *forecast.Forecast `json:"forecast"` // nil if there is none
		Why      string             `json:"why,omitempty"`
	}{At: millis(table.at), Every: table.every(), Forecast: table.forecast}
	if table.plan != nil {
		out.Drifted, out.Items = table.plan.Drifted(), append([]retention.Item{}, table.plan.Items()...)
	}
	if table.why != nil {
		out.Why = table.why.Error() // the operator may see it
	}
	return encode(w, out)
}
