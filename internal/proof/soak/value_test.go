package soak

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// reading is the value of every point. It names its tenant, device, time and version, so that a check can compare it
// with the place where it was found.
type reading struct {
	Tenant  string  `json:"t"`
	Device  int     `json:"d"`
	Slot    int     `json:"s"`
	Version int     `json:"v"`
	X       float64 `json:"x"`
	Check   uint64  `json:"c,string"`
}

// hundredths returns the number in a value, times 100: 0 to 9,999.
func hundredths(device, slot, version int) int64 {
	return int64(mix(uint64(device), uint64(slot), uint64(version)) % 10_000)
}

// mix returns a hash of numbers.
func mix(xs ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, x := range xs {
		h = (h ^ x) * 0xff51afd7ed558ccd
		h ^= h >> 33
	}
	return h
}

func (r reading) sum() uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d/%d/%d/%v", r.Tenant, r.Device, r.Slot, r.Version, r.X)
	return h.Sum64()
}

// device is one device of the load.
type device struct {
	n      int
	tenant *customer
	entity tsdb.Entity
	offset time.Duration // of its points within their slots
	plain  *series
	short  *series // nil for most
}

// customer is one tenant of the load.
type customer struct {
	id      tenant.ID
	devices []*device
	erased  erasedFlag
}

func (d *device) value(slot, version int) reading {
	r := reading{Tenant: d.tenant.id.String(), Device: d.n, Slot: slot, Version: version, X: float64(hundredths(d.n, slot, version)) / 100}
	r.Check = r.sum()
	return r
}

func (d *device) time(base time.Time, slot int) time.Time {
	return base.Add(time.Duration(slot)*slotWidth + d.offset)
}

// slotAt returns the slot of a time, and whether the device has points at that time of a slot.
func (d *device) slotAt(base, t time.Time) (int, bool) {
	since := t.Sub(base) - d.offset
	return int(since / slotWidth), since >= 0 && since%slotWidth == 0
}

// mismatch returns an error if a value does not belong to the device and time where it was found.
func (d *device) mismatch(base time.Time, p tsdb.Point[reading]) error {
	v := p.Value
	switch slot, ok := d.slotAt(base, p.Time); {
	case p.Entity != d.entity:
		return fmt.Errorf("got a point of entity %s", p.Entity)
	case v.Tenant != d.tenant.id.String() || v.Device != d.n:
		return fmt.Errorf("crossing: got a value of tenant %s, device %d", v.Tenant, v.Device)
	case !ok || v.Slot != slot:
		return fmt.Errorf("got a value of slot %d at the time of slot %d (%v)", v.Slot, slot, ok)
	case v.Version < 0 || v.Version > 1:
		return fmt.Errorf("got the unknown version %d", v.Version)
	case v != d.value(slot, v.Version):
		return fmt.Errorf("got value %+v, want %+v", v, d.value(slot, v.Version))
	}
	return nil
}
