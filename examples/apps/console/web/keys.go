package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/heatview"
	"github.com/tidemark-go/tidemark/examples/internal/keyadvice"
	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/tenant"
)

const (
	// keysFor is how long a recording is shown before it is copied again, and so how often the page keys asks.
	keysFor = 10 * time.Second
	// adviceFor is how long the advice on a tenant's keys is shown before they are read again.
	adviceFor = 10 * time.Minute
	// advised is how many entities the advice is about.
	advised = 200
	// maxShared is for how many tenants or their datasets something is kept.
	maxShared = 1000
)

// ownFinding is a finding of the heatmap without what it says about other tenants.
type ownFinding struct {
	Rule    heatview.Rule `json:"rule"`
	Dataset string        `json:"dataset,omitempty"`
	Key     string        `json:"key,omitempty"`
	Rate    float64       `json:"rate"`
	At      float64       `json:"at"`
	Remedy  string        `json:"remedy"`
}

// seen is what the recorder has recorded.
type seen struct {
	recording *heat.Recording
	findings  []heatview.Finding
}

func (s *Console) readKeys(context.Context) (*seen, error) {
	r := heatview.Of(s.Keys)
	return &seen{recording: r, findings: heatview.Findings(r)}, nil
}

// keys answers with the findings about the tenant's own rows.
func (s *Console) keys(w http.ResponseWriter, r request) error {
	out := struct {
		Recorded bool         `json:"recorded"` // whether this process records
		From     float64      `json:"from"`
		To       float64      `json:"to"`
		Every    float64      `json:"every_ms"`
		Findings []ownFinding `json:"findings"`
	}{Every: keysFor.Seconds() * 1000, Findings: []ownFinding{}}
	if s.Keys == nil {
		return encode(w, out)
	}
	found, err := s.recorded.get(r.Context())
	if err != nil {
		return err
	}
	out.Recorded, out.From, out.To = true, millis(found.recording.First), millis(found.recording.Last)
	for _, f := range found.findings {
		if f.Tenant == r.tenant.String() && f.Rule != heatview.WhaleTenant {
			out.Findings = append(out.Findings, ownFinding{f.Rule, f.Dataset, f.Key, f.Rate, millis(f.At), f.Remedy})
		}
	}
	return encode(w, out)
}

// totals are the counts of a recording, in JSON.
type totals struct {
	Reads    uint64 `json:"reads"`
	Writes   uint64 `json:"writes"`
	Failures uint64 `json:"failures"`
	Bytes    uint64 `json:"bytes"`
}

// tableKeys answers with the findings about all rows.
func (s *Console) tableKeys(w http.ResponseWriter, r request) error {
	out := struct {
		Recorded bool               `json:"recorded"`
		From     float64            `json:"from"`
		To       float64            `json:"to"`
		Every    float64            `json:"every_ms"`
		Totals   totals             `json:"totals"`
		Findings []heatview.Finding `json:"findings"`
	}{Every: keysFor.Seconds() * 1000, Findings: []heatview.Finding{}}
	if s.Keys == nil {
		return encode(w, out)
	}
	found, err := s.recorded.get(r.Context())
	if err != nil {
		return err
	}
	out.Recorded, out.From, out.To, out.Totals = true, millis(found.recording.First), millis(found.recording.Last), totals(found.recording.Totals())
	out.Findings = append(out.Findings, found.findings...)
	return encode(w, out)
}

// tableHeatmap answers with the recording as a picture's data.
func (s *Console) tableHeatmap(w http.ResponseWriter, r request) error {
	if s.Keys == nil {
		return problem{Status: http.StatusNotFound, Detail: "This process does not record keys."}
	}
	if !s.exports.Take(tenant.ID{}, 1) { // it takes the memory of a recording
		return errBusy
	}
	defer s.exports.Return(tenant.ID{}, 1)
	found, err := s.recorded.get(r.Context())
	if err != nil {
		return err
	}
	return encode(w, heatview.Data(found.recording))
}

// advice is what package keyadvice says about a tenant's keys.
type advice struct {
	At       float64            `json:"at"`
	Every    float64            `json:"every_ms"`
	Entities int                `json:"entities"` // in the sample
	Share    float64            `json:"share"`
	Advice   []keyadvice.Advice `json:"advice"`
}

// sharedBy keeps what is read for each tenant, or each of its datasets, so that it is read once in a time, and for few
// of them at the same time.
type sharedBy[K comparable, T any] struct {
	mu  sync.Mutex
	all map[K]*shared[T]
}

func (a *sharedBy[K, T]) of(key K, keep func(*T) time.Duration, read func(context.Context) (*T, error)) *shared[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all[key] == nil {
		if a.all == nil || len(a.all) >= maxShared {
			a.all = map[K]*shared[T]{}
		}
		a.all[key] = newShared(keep, read)
	}
	return a.all[key]
}

// advice answers with the advice on the keys of a tenant's dataset.
func (s *Console) advice(w http.ResponseWriter, r request) error {
	d, err := s.catalog.find(r.Context(), r.tenant, r.PathValue("dataset"))
	if err != nil {
		return err
	}
	name, id := d.described.Name, r.tenant
	out, err := s.advices.of(tenantDataset{id, name}, keepFor[advice](adviceFor), func(ctx context.Context) (*advice, error) {
		found, sample, err := keyadvice.TakeSample(operatorContext(ctx), s.Store, name, id, advised)
		if err != nil {
			return nil, err
		}
		list, err := keyadvice.Advise(found, sample)
		if err != nil {
			return nil, err
		}
		return &advice{millis(time.Now()), adviceFor.Seconds() * 1000, len(sample.Entities), sample.Share, append([]keyadvice.Advice{}, list...)}, nil
	}).get(r.Context())
	if err != nil {
		return err
	}
	return encode(w, out)
}
