package limit

import (
	"fmt"
	"iter"
	"math"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// Limits are the limits of one tenant. A zero field is no limit.
type Limits struct {
	// PointsPerSecond limits the points written, in all datasets together. PointsBurst is how many are allowed at
	// once after a pause; zero is the points of one second. Up to 4 Gi.
	PointsPerSecond, PointsBurst int64
	// BytesPerSecond limits the bytes of payload written. BytesBurst is how many are allowed at once after a pause;
	// zero is the bytes of one second. A point larger than the burst is allowed when the burst is full; later points
	// then wait until the rate has compensated for it. Up to 4 Gi.
	BytesPerSecond, BytesBurst int64
	// Entities limits the entities written, in all datasets together; an entity in two datasets counts as two. An
	// entity counts until it has not been written for one to two windows (Options.Window). Beyond the limit, entities
	// that count may still be written, and new ones are refused. Up to 10 million.
	Entities int64
	// Datasets limits the datasets of the table that were created for the tenant: by Store.Ensure, with a context
	// that carries the tenant. The table's catalogue counts them, so they count in all processes and after a restart,
	// until they are deleted. Ensure refuses to create more. Up to 10 thousand.
	Datasets int64
	// PointBytes limits the size of a point's payload. Up to 4 GiB; a schema's own limit is far lower.
	PointBytes int64
	// RangeLength limits the time that a range or a page may cover.
	RangeLength time.Duration
	// FanOut limits the requests that one read has in progress at once. A read that asks for more is not refused: it
	// uses the limit, and takes longer. Up to 1 million.
	FanOut int64
	// ConcurrentReads limits the reads in progress. An iterator counts as a read while its loop runs; a read within
	// its loop is another one. Up to 1 million.
	ConcurrentReads int64
}

// Table has the limits of all tenants. The zero Table limits no tenant.
type Table struct {
	// Defaults are the limits of every tenant without an override.
	Defaults Limits
	// Overrides are all the limits of a tenant: none of the defaults apply. To change only some, start with a copy of
	// Defaults.
	Overrides map[tenant.ID]Limits
	// Share is the part of each limit that this process allows, if a tenant's calls are spread over several
	// processes: 0.25 for each of four. It applies to the rates and their bursts, Entities and ConcurrentReads. They
	// are rounded up, so a small limit is at least 1. Limits of a single call, and Datasets, are not divided. The
	// share of Entities is exact only if each entity always reaches the same process. Zero is 1, all of it.
	Share float64
}

const (
	maxRate     = 1 << 32 // so that a billion times two of them fit into 63 bits
	maxEntities = 10_000_000
	maxDatasets = 10_000
	maxAtOnce   = 1_000_000
)

// member is a limit as in JSON and in errors.
type member struct {
	name string
	at   func(*Limits) *int64
	most int64
	rate string // the rate that a burst belongs to
}

var members = []member{
	{name: string(PointsPerSecond), at: func(l *Limits) *int64 { return &l.PointsPerSecond }, most: maxRate},
	{name: "points_burst", at: func(l *Limits) *int64 { return &l.PointsBurst }, most: maxRate, rate: string(PointsPerSecond)},
	{name: string(BytesPerSecond), at: func(l *Limits) *int64 { return &l.BytesPerSecond }, most: maxRate},
	{name: "bytes_burst", at: func(l *Limits) *int64 { return &l.BytesBurst }, most: maxRate, rate: string(BytesPerSecond)},
	{name: string(Entities), at: func(l *Limits) *int64 { return &l.Entities }, most: maxEntities},
	{name: string(Datasets), at: func(l *Limits) *int64 { return &l.Datasets }, most: maxDatasets},
	{name: string(PointBytes), at: func(l *Limits) *int64 { return &l.PointBytes }, most: maxRate},
	{name: string(RangeLength), at: func(l *Limits) *int64 { return (*int64)(&l.RangeLength) }, most: math.MaxInt64},
	{name: "fan_out", at: func(l *Limits) *int64 { return &l.FanOut }, most: maxAtOnce},
	{name: string(ConcurrentReads), at: func(l *Limits) *int64 { return &l.ConcurrentReads }, most: maxAtOnce},
}

// check rejects invalid limits. at is their place, for errors.
func (l Limits) check(at string) error {
	rates := map[string]int64{}
	for _, m := range members {
		v := *m.at(&l)
		rates[m.name] = v
		switch {
		case v < 0 || v > m.most:
			return invalid.New(invalid.ErrLimits, at+m.name, m.text(v), "0 for no limit, or up to "+m.text(m.most))
		case v > 0 && m.rate != "" && rates[m.rate] == 0:
			return invalid.New(invalid.ErrLimits, at+m.name, m.text(v), "0, because "+m.rate+" is 0")
		}
	}
	return nil
}

func (m member) text(v int64) string {
	if m.name == string(RangeLength) {
		return time.Duration(v).String()
	}
	return strconv.FormatInt(v, 10)
}

// resolve returns the limits, with their bursts, of a process with a share.
func (l Limits) resolve(share float64) *Limits {
	if l.PointsBurst == 0 {
		l.PointsBurst = l.PointsPerSecond
	}
	if l.BytesBurst == 0 {
		l.BytesBurst = l.BytesPerSecond
	}
	for _, v := range []*int64{&l.PointsPerSecond, &l.PointsBurst, &l.BytesPerSecond, &l.BytesBurst, &l.Entities, &l.ConcurrentReads} {
		*v = part(*v, share)
	}
	return &l
}

// part returns a share of v, rounded up.
func part(v int64, share float64) int64 {
	const exact = 1 - 1e-12 // 0.07 of 100 is 7, and not 7.000000000000001
	if share == 1 {
		return v
	}
	return int64(math.Ceil(float64(v) * share * exact))
}

// check rejects an invalid table.
func (t Table) check() error {
	if !(t.Share >= 0 && t.Share <= 1) {
		return invalid.New(invalid.ErrLimits, "share", strconv.FormatFloat(t.Share, 'g', -1, 64), "0 for all, or above 0 and up to 1")
	}
	if err := t.Defaults.check("defaults."); err != nil {
		return err
	}
	for id, l := range t.Overrides {
		if id.IsZero() {
			return invalid.New(invalid.ErrLimits, "tenant in overrides", "the zero ID", "an ID from tenant.Parse")
		}
		if err := l.check(fmt.Sprintf("overrides.%s.", id)); err != nil {
			return err
		}
	}
	return nil
}

// rules are a checked table, as it applies in this process. They are immutable.
type rules struct {
	defaults  *Limits
	overrides map[tenant.ID]*Limits
	since     int64 // when the defaults were set

	table    Limits // the table's defaults
	share    float64
	profiles *profiles
}

func (t Table) rules(since int64, profiles *profiles) (*rules, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if t.Share == 0 {
		t.Share = 1
	}
	r := &rules{defaults: t.Defaults.resolve(t.Share), overrides: make(map[tenant.ID]*Limits, len(t.Overrides)), since: since, table: t.Defaults, share: t.Share, profiles: profiles}
	for id, l := range t.Overrides {
		r.overrides[id] = l.resolve(t.Share)
	}
	return r, nil
}

// of returns the limits of a tenant.
func (r *rules) of(id tenant.ID) *Limits {
	if len(r.overrides) > 0 {
		if l, ok := r.overrides[id]; ok {
			return l
		}
	}
	if p := r.profiles.get(id); p != nil {
		return p.of(r)
	}
	return r.defaults
}

// changed returns the tenants whose overrides differ from older rules'.
func (r *rules) changed(old *rules) iter.Seq[tenant.ID] {
	return func(yield func(tenant.ID) bool) {
		for id, l := range r.overrides {
			if was, ok := old.overrides[id]; (!ok || *was != *l) && !yield(id) {
				return
			}
		}
		for id := range old.overrides {
			if _, ok := r.overrides[id]; !ok && !yield(id) {
				return
			}
		}
	}
}
