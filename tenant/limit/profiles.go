package limit

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// SetProfile sets the limits in a tenant's profile document, tenants.Profile.Limits: an object of limits, like an
// override of Parse. Its limits replace the table's Defaults, now and after each Set; 0 is no limit. If the table has
// an override for the tenant, only the override applies. Nil and null remove the document.
//
// The tenant's usage stays, as in Set. If the document is invalid, SetProfile changes nothing and returns an
// error. A store with tsdb.StoreOptions.ProfileLimits calls SetProfile. The cost does not depend on the number
// of tenants. Each document takes some 200 bytes of memory.
func (c core) SetProfile(id tenant.ID, doc []byte) error {
	l := c.Value()
	if l.off() {
		return invalid.New(invalid.ErrLimits, "limiter", "nil or the zero value", "a limiter from New")
	}
	if id.IsZero() {
		return invalid.New(invalid.ErrLimits, "tenant", "empty", "a tenant from tenant.Parse")
	}
	var p *profile
	if doc = bytes.TrimSpace(doc); len(doc) > 0 && !bytes.Equal(doc, []byte("null")) {
		p = new(profile)
		if err := p.parse(doc); err != nil {
			return err
		}
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	l.settle(id)
	l.profiles.set(id, p)
	r := *l.rules.Load() // a copy, so that the tenant adopts it; for all others nothing has changed since
	l.rules.Store(&r)
	l.settle(id)
	return nil
}

// profile is a tenant's document.
type profile struct {
	limits Limits
	named  uint32 // bits of the members that it names, by index
	merged atomic.Pointer[merged]
}

// merged are the limits of a profile merged with a table's defaults.
type merged struct{ defaults, limits *Limits }

func (p *profile) parse(doc []byte) error {
	named, err := p.limits.parse(doc, "limits")
	if err != nil {
		return err
	}
	for i, m := range members {
		if named[m.name] {
			p.named |= 1 << i
		}
	}
	return p.limits.check("limits.")
}

// of returns the limits of the tenant under rules.
func (p *profile) of(r *rules) *Limits {
	if m := p.merged.Load(); m != nil && m.defaults == r.defaults {
		return m.limits
	}
	all := r.table
	for i, m := range members {
		if p.named&(1<<i) != 0 {
			*m.at(&all) = *m.at(&p.limits)
		}
	}
	m := &merged{r.defaults, all.resolve(r.share)}
	p.merged.Store(m)
	return m.limits
}

// profiles are the documents of all tenants. The zero value is empty.
type profiles struct {
	some atomic.Bool // there is at least one
	mu   sync.RWMutex
	of   map[tenant.ID]*profile
}

func (p *profiles) set(id tenant.ID, doc *profile) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if doc == nil {
		delete(p.of, id)
	} else {
		if p.of == nil {
			p.of = map[tenant.ID]*profile{}
		}
		p.of[id] = doc
	}
	p.some.Store(len(p.of) > 0)
}

func (p *profiles) get(id tenant.ID) *profile {
	if !p.some.Load() {
		return nil
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.of[id]
}
