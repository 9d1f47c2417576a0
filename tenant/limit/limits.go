package limit

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// Limits are what one tenant may do. A zero field is no limit; the zero Limits are none at all.
type Limits struct {
	// PointsPerSecond is how many points may be written, of all datasets together, and PointsBurst how many of them at once,
	// after a while without any: zero is a second's worth. Up to 4 Gi.
	PointsPerSecond, PointsBurst int64
	// BytesPerSecond is how many bytes of payload may be written, and BytesBurst how many of them at once: zero is a second's
	// worth. A point that is larger than the burst is let in after a while without any, and those after it wait until the
	// rate has made up for it. Up to 4 Gi.
	BytesPerSecond, BytesBurst int64
	// Entities is how many entities may be written, of all datasets together; one that is in two datasets counts as two. An
	// entity counts from when it is written until it has not been for one to two windows (Options.Window). Those that count
	// may go on beyond the limit, new ones are refused. Up to 10 million.
	Entities int64
	// Datasets is how many datasets of the table may have been created for the tenant: by Store.Ensure, with a context that carries
	// the tenant. The catalogue of the table counts them, so they count in all processes and after a restart, until they are
	// deleted. Further calls of Ensure that would create one are refused. Up to 10 thousand.
	Datasets int64
	// PointBytes is how large the payload of a point may be. Up to 4 GiB; a schema refuses it far below.
	PointBytes int64
	// RangeLength is how much time a range or a page may be asked for.
	RangeLength time.Duration
	// FanOut is how many requests one read has under way at once, at most. What is asked for beyond that is not refused: the
	// read is as narrow as the limit, and takes longer. Up to 1 million.
	FanOut int64
	// ConcurrentReads is how many reads may be under way at once. A sequence is one from its first step until its loop is left;
	// a read within its loop is another. Up to 1 million.
	ConcurrentReads int64
}

// Table says which limits are whose. The zero Table limits nobody.
type Table struct {
	// Defaults are the limits of every tenant that is not among the overrides.
	Defaults Limits
	// Overrides are all the limits of a tenant: none of its defaults apply. To change one of them, begin with a copy of Defaults.
	Overrides map[tenant.ID]Limits
	// Share is the part of each limit that this process lets through, for a fleet among which the calls of a tenant are
	// spread: 0.25 for each of four. It applies to the rates and their bursts, to Entities and to ConcurrentReads, which are
	// rounded up, so that a small limit is still one. Those on a single call and Datasets are whole in each process. Entities are
	// shared truly only where each entity comes to the same process. Zero is 1, all of it.
	Share float64
}

const (
	maxRate     = 1 << 32 // so that a billion times two of them fit into 63 bits
	maxEntities = 10_000_000
	maxDatasets = 10_000
	maxAtOnce   = 1_000_000
)

// member is a limit as it stands in JSON and in errors.
type member struct {
	name string
	at   func(*Limits) *int64
	most int64
	rate string // whose burst it is
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

// check refuses limits that cannot be meant. at is where they stand.
func (l Limits) check(at string) error {
	rates := map[string]int64{}
	for _, m := range members {
		v := *m.at(&l)
		rates[m.name] = v
		switch {
		case v < 0 || v > m.most:
			return invalid.New(ErrInvalid, at+m.name, m.text(v), "0 for no limit, or up to "+m.text(m.most))
		case v > 0 && m.rate != "" && rates[m.rate] == 0:
			return invalid.New(ErrInvalid, at+m.name, m.text(v), "0, as there is no "+m.rate)
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

// resolve returns the limits of a process that has a share of them, with their bursts.
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

// check refuses a table that nothing can be made of.
func (t Table) check() error {
	if !(t.Share >= 0 && t.Share <= 1) {
		return invalid.New(ErrInvalid, "share", strconv.FormatFloat(t.Share, 'g', -1, 64), "0 for all, or above 0 and up to 1")
	}
	if err := t.Defaults.check("defaults."); err != nil {
		return err
	}
	for id, l := range t.Overrides {
		if id.IsZero() {
			return invalid.New(ErrInvalid, "overrides", "of the zero tenant", "those of tenants")
		}
		if err := l.check(fmt.Sprintf("overrides.%s.", id)); err != nil {
			return err
		}
	}
	return nil
}

// rules are a table that was checked, as they apply in this process. They are never changed.
type rules struct {
	defaults  *Limits
	overrides map[tenant.ID]*Limits
	since     int64 // when they were set

	table    Limits // the defaults as the table has them
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
