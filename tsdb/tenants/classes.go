package tenants

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// assignment returns the part of a profile that decides in which class points are written.
func (p Profile) assignment() catalog.Assignment {
	return catalog.Assignment{Retention: p.Retention, Classes: p.Classes}
}

// offered rejects retention classes that no dataset in the catalogue offers. It holds a few entries of the catalogue
// in memory. The error lists datasets only for operators: if the context carries a tenant, the error names no other
// dataset.
func (r room) offered(ctx context.Context, p Profile) error {
	if p.Retention == "" && len(p.Classes) == 0 {
		return nil
	}
	found := p.Retention == ""
	named := map[string]string{} // the offered classes by dataset of p.Classes
	refused := map[string]bool{}
	var shown []string
	n := 0
	for e, err := range catalog.Each(ctx, r.Whole) {
		if err != nil {
			return r.Explain(err)
		}
		offers := e.Offers()
		text := e.Name + " (" + strings.Join(offers, ", ") + ")"
		found = found || slices.Contains(offers, p.Retention)
		if class, ok := p.Classes[e.Name]; ok {
			named[e.Name], refused[e.Name] = text, !slices.Contains(offers, class)
		}
		if n++; n <= mostOffers {
			shown = append(shown, text)
		}
	}
	all := ": it has none yet"
	if more := n - mostOffers; more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	if n > 0 {
		all = ": " + strings.Join(shown, ", ")
	}
	_, outside := tenant.FromContext(ctx)
	if outside {
		all = ""
	}
	if !found {
		return invalid.New(tsdb.ErrInvalid, "Retention", invalid.Quote(p.Retention), "a class that a dataset of the table offers"+all)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Classes)) {
		own := ": " + named[name]
		if outside {
			own = ""
		}
		switch _, ok := named[name]; {
		case !ok:
			return invalid.New(tsdb.ErrInvalid, "dataset in Classes", invalid.Quote(name), "a dataset of the table"+all)
		case refused[name]:
			return invalid.New(tsdb.ErrInvalid, "class for dataset "+name, invalid.Quote(p.Classes[name]), "a class that it offers"+own)
		}
	}
	return nil
}

// mostOffers is how many datasets a message lists.
const mostOffers = 20
