package tenants

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

// assignment is what stores go by of a profile.
func (p Profile) assignment() catalog.Assignment {
	return catalog.Assignment{Retention: p.Retention, Classes: p.Classes}
}

// offered refuses retention classes that the catalogue's datasets do not offer.
func (r room) offered(ctx context.Context, p Profile) error {
	if p.Retention == "" && len(p.Classes) == 0 {
		return nil
	}
	known, err := catalog.All(ctx, r.Table)
	if err != nil {
		return r.Explain(err)
	}
	if p.Retention != "" && !slices.ContainsFunc(known, func(d catalog.Dataset) bool { return slices.Contains(d.Offers(), p.Retention) }) {
		return invalid.New(ErrInvalid, "Retention", invalid.Quote(p.Retention), "a class that a dataset of the table offers: "+offers(known))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Classes)) {
		i := slices.IndexFunc(known, func(d catalog.Dataset) bool { return d.Name == name })
		if i < 0 {
			return invalid.New(ErrInvalid, "dataset in Classes", invalid.Quote(name), "one of the table: "+offers(known))
		}
		if class := p.Classes[name]; !slices.Contains(known[i].Offers(), class) {
			return invalid.New(ErrInvalid, "class for dataset "+name, invalid.Quote(class), "one that it offers: "+offers(known[i:i+1]))
		}
	}
	return nil
}

// mostOffers is how many datasets a message lists.
const mostOffers = 20

// offers says what datasets offer.
func offers(known []catalog.Dataset) string {
	if len(known) == 0 {
		return "it has none yet"
	}
	var all []string
	for _, d := range known[:min(len(known), mostOffers)] {
		all = append(all, d.Name+" ("+strings.Join(d.Offers(), ", ")+")")
	}
	if more := len(known) - mostOffers; more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, ", ")
}
