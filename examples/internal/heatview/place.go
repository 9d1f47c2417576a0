package heatview

import (
	"strings"

	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// place says where a row is.
type place struct {
	tenant  string // empty for rows that are no tenant's
	dataset string // with the kind of its rows, such as readings!head
	group   string // what the keys of the tenant's dataset begin with; empty without a tenant
	entity  string // what the keys of the entity's rows begin with
}

// placeOf takes a row key apart. The keys of other programs have no tenant: their entity is the key without the digits
// of times at its end.
func placeOf(key string) place {
	g, all, ok := rowkey.GroupOf(key)
	if !ok || len(g.Dataset) >= digitsOfAge && digits(g.Dataset) { // a time: a key of another program
		return place{entity: untimed(key)}
	}
	p := place{tenant: g.Tenant.String(), dataset: g.Dataset, group: all.Start, entity: key}
	if g.Kind != "" {
		p.dataset += "!" + g.Kind
	}
	for _, identity := range []bool{false, true} {
		if of, _, ok := rowkey.EntityOf(key, identity); ok && len(of.Start) > len(all.Start) {
			p.entity = of.Start
			return p
		}
	}
	if g.Kind == "" && len(key) < heat.MaxKey { // a point's key ends with its time, if it is complete
		return place{entity: untimed(key)}
	}
	return p
}

const (
	delim       = "#"
	digitsOfAge = 10 // seconds since 1970 have as many digits, and finer times have more
)

// untimed returns a key without the fields at its end that look like a time.
func untimed(key string) string {
	for {
		i := strings.LastIndex(key, delim)
		if i <= 0 || len(key)-i-1 < digitsOfAge || !digits(key[i+1:]) {
			return key
		}
		key = key[:i]
	}
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// lead returns the first field of a key below its group.
func (p place) lead() string {
	first, _, _ := strings.Cut(p.entity[min(len(p.group), len(p.entity)):], delim)
	return first
}

// fields returns the key fields of the entity.
func (p place) fields() []string {
	return strings.Split(strings.TrimSuffix(p.entity[min(len(p.group), len(p.entity)):], delim), delim)
}

// otherRows stands for the tenant of rows that are no tenant's.
const otherRows = "(other rows)"

func (p place) tenantName() string {
	if p.tenant == "" {
		return otherRows
	}
	return p.tenant
}

// name returns the entity as people read it.
func (p place) name() string {
	if p.tenant == "" {
		return p.entity
	}
	return p.tenant + " " + p.dataset + " " + strings.Join(p.fields(), delim)
}
