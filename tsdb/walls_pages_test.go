package tsdb_test

import (
	"errors"
	"maps"
	"slices"

	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

func init() { maps.Copy(attacks, pageAttacks) }

// pageAttacks are the attacks on pages of entities, and on the existence of tenants.
var pageAttacks = map[string]func(h *walls, a attack) error{
	"PrefixReader.PageLatest": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		if err := h.forgeUnder(a, func(text string) error { _, err := a.repo.Under(prefix).PageLatest(a.ctx, 5, text); return err }); err != nil {
			return err
		}
		var got, want []string
		for next, more := "", true; more; more = next != "" {
			page, err := a.repo.Under(prefix).PageLatest(a.ctx, 1+h.IntN(3), next)
			if err != nil {
				return err
			}
			if got, next = append(got, values(page.Points)...), page.Next; next != "" {
				h.cursors[next] = a.place
			}
		}
		for _, p := range h.of(a.id, a.dataset, part) {
			want = append(want, h.want(p, far)[0])
		}
		slices.Sort(got)
		slices.Sort(want)
		h.same("PrefixReader.PageLatest", got, want)
		return nil
	},
	"tenants.Exists": func(h *walls, a attack) error {
		_, err := tenants.Exists(a.ctx, h.store, a.id)
		return err
	},
	"PrefixReader.PageEntities": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		if err := h.forgeUnder(a, func(text string) error { _, err := a.repo.Under(prefix).PageEntities(a.ctx, 5, text); return err }); err != nil {
			return err
		}
		var got, want []string
		for next, more := "", true; more; more = next != "" {
			page, err := a.repo.Under(prefix).PageEntities(a.ctx, 1+h.IntN(3), next)
			if err != nil {
				return err
			}
			for _, e := range page.Entities {
				got = append(got, e.String())
			}
			if next = page.Next; next != "" {
				h.cursors[next] = a.place
			}
		}
		for _, p := range h.of(a.id, a.dataset, part) {
			want = append(want, p.entity.String())
		}
		slices.Sort(got)
		slices.Sort(want)
		h.same("PrefixReader.PageEntities", got, want)
		return nil
	},
}

// forgeUnder tries a cursor that was made for the tenant acme2.
func (h *walls) forgeUnder(a attack, page func(text string) error) error {
	for _, kind := range []cursor.Kind{cursor.Newest, cursor.Entities} {
		mine := cursor.Scope{Kind: kind, Tenant: "acme2", Dataset: a.dataset}
		if err := page(cursor.Box{}.Write(mine, []byte(inside.Of(a.entity).Path()))); err != nil && !errors.Is(err, tsdb.ErrCursor) {
			return err
		} else if err == nil && a.id.String() != "acme2" {
			return errors.New("a forged cursor of acme2 is taken")
		}
	}
	return nil
}
