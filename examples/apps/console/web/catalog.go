package web

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

const (
	// catalogFor is how long the catalogue is used before it is read again, and that a tenant has points in a dataset.
	// That it has none is used for absentFor.
	catalogFor = 10 * time.Second
	absentFor  = 2 * time.Second
	// maxRemembered is for how many datasets of tenants the second is remembered.
	maxRemembered = 10_000
)

// dataset is a dataset of the store, without its Go type.
type dataset struct {
	tsdb.Dataset
	described dynamic.Description
	values    *tsdb.Schema[codec.Record] // nil if the payloads cannot be read
	problem   string                     // why they cannot
	known     Known                      // nil for most
}

// catalog is the store's datasets. It is safe for concurrent use.
type catalog struct {
	store *tsdb.Store
	known map[string]Known

	mu    sync.Mutex
	until time.Time
	all   []*dataset
	has   map[tenantDataset]presence
}

type tenantDataset struct {
	tenant  tenant.ID
	dataset string
}

type presence struct {
	yes   bool
	until time.Time
}

func newCatalog(store *tsdb.Store, known []Known) *catalog {
	c := &catalog{store: store, known: map[string]Known{}, has: map[tenantDataset]presence{}}
	for _, k := range known {
		c.known[k.dataset()] = k
	}
	return c
}

// list returns all datasets of the catalogue. Entries that are damaged are left out.
func (c *catalog) list(ctx context.Context) ([]*dataset, error) {
	c.mu.Lock()
	all, fresh := c.all, time.Now().Before(c.until)
	c.mu.Unlock()
	if fresh {
		return all, nil
	}
	all = nil
	for d, err := range c.store.Datasets(ctx) {
		if d == nil && err != nil {
			if _, failed := status.FromError(err); failed || ctx.Err() != nil { // the catalogue was not read to its end
				return nil, err
			}
			continue
		}
		one := &dataset{Dataset: d, described: dynamic.Describe(d), known: c.known[d.Name()]}
		values, err := dynamic.Schema(d, dynamic.Options{})
		if err != nil {
			one.problem = "Its payloads are in a format that the console does not read."
		} else {
			one.values = values
		}
		all = append(all, one)
	}
	c.mu.Lock()
	c.all, c.until = all, time.Now().Add(catalogFor)
	c.mu.Unlock()
	return all, nil
}

// of returns the datasets in which a tenant has points. The names of the others are not shown to it.
func (c *catalog) of(ctx context.Context, id tenant.ID) ([]*dataset, error) {
	all, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	var own []*dataset
	for _, d := range all {
		yes, err := c.hasPoints(ctx, id, d)
		if err != nil {
			return nil, err
		}
		if yes {
			own = append(own, d)
		}
	}
	return own, nil
}

// find returns a dataset in which a tenant has points.
func (c *catalog) find(ctx context.Context, id tenant.ID, name string) (*dataset, error) {
	all, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		if d.described.Name != name {
			continue
		}
		yes, err := c.hasPoints(ctx, id, d)
		switch {
		case err != nil:
			return nil, err
		case !yes:
			return nil, errNoDataset
		case d.values == nil:
			return nil, problem{Status: 422, Detail: d.problem}
		}
		return d, nil
	}
	return nil, errNoDataset
}

func (c *catalog) hasPoints(ctx context.Context, id tenant.ID, d *dataset) (bool, error) {
	key, now := tenantDataset{id, d.described.Name}, time.Now()
	c.mu.Lock()
	known, ok := c.has[key]
	c.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.yes, nil
	}
	yes, err := hasPoints(ctx, c.store, id, d)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.has) >= maxRemembered {
		clear(c.has)
	}
	until := now.Add(catalogFor)
	if !yes {
		until = now.Add(absentFor)
	}
	c.has[key] = presence{yes, until}
	return yes, nil
}

// hasPoints reads the first entity. It needs no payload, so it works for datasets that cannot be decoded, too.
func hasPoints(ctx context.Context, store *tsdb.Store, id tenant.ID, d *dataset) (bool, error) {
	schema, err := d.entities()
	if err != nil {
		return false, err
	}
	page, err := schema.For(store, id).Under(tsdb.AllEntities()).PageEntities(ctx, 1, "")
	if errors.Is(err, tsdb.ErrErased) {
		return false, nil
	}
	return len(page.Entities) > 0, err
}

// entities returns a schema that reads entities and times, whatever the payloads are.
func (d *dataset) entities() (*tsdb.Schema[codec.Record], error) {
	if d.values != nil {
		return d.values, nil
	}
	decoders := map[string]func([]byte) (any, error){}
	for _, tag := range d.described.Tags {
		decoders[tag] = func([]byte) (any, error) { return nil, nil }
	}
	return dynamic.Schema(d.Dataset, dynamic.Options{Decoders: decoders})
}

// parts returns the values of an entity's key fields as users write them. Parts that do not fit their field are shown
// as stored.
func (d *dataset) parts(e tsdb.Entity) []string {
	stored := e.Parts()
	if len(stored) != len(d.described.Key) {
		return stored
	}
	parts, into := make([]string, len(stored)), make([]any, len(stored))
	for i := range parts {
		into[i] = &parts[i]
	}
	if d.Scan(e, into...) != nil {
		return stored
	}
	return parts
}

// datasets answers with the datasets in which the tenant has points.
func (s *Console) datasets(w http.ResponseWriter, r request) error {
	own, err := s.catalog.of(r.Context(), r.tenant)
	if err != nil {
		return err
	}
	type shownDataset struct {
		dynamic.Description
		Problem string `json:"problem,omitempty"`
		// Rollups says that charts of the dataset use its rollups.
		UsesRollups bool `json:"uses_rollups"`
	}
	out := []shownDataset{}
	for _, d := range own {
		out = append(out, shownDataset{d.described, d.problem, d.known != nil})
	}
	return encode(w, map[string]any{"datasets": out})
}

// dataset returns the dataset of an address and its repository for the tenant.
func (s *Console) dataset(r request) (*dataset, *tsdb.Repository[codec.Record], error) {
	d, err := s.catalog.find(r.Context(), r.tenant, r.PathValue("dataset"))
	if err != nil {
		return nil, nil, err
	}
	return d, d.values.For(s.Store, r.tenant), nil
}
