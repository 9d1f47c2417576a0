package tsdb_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// directory is the model of one tenant's entities: the value of the newest visible point of each.
type directory map[tsdb.Entity]float64

// under returns the entities below a prefix, in order.
func (d directory) under(p tsdb.Prefix) (out []tsdb.Entity) {
	for e := range d {
		if p == tsdb.AllEntities() || slices.Equal(e.Parts()[:len(p.Parts())], p.Parts()) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, tsdb.Entity.Compare)
	return out
}

// TestPagesOfEntitiesEqualAModel: joined pages of entities equal a scan over a map, in order, for all kinds of schemas,
// prefixes and sizes. While entities come and go between pages, those that stay appear exactly once.
func TestPagesOfEntitiesEqualAModel(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"plain": {}, "salted": {Salts: 4}, "heads": {Head: tsdb.Head{Points: 2}, Precision: tsdb.Milliseconds},
		"salted heads": {Head: tsdb.Head{Points: 1}, Precision: tsdb.Milliseconds, Salts: 3},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.OneOf(t, name == "salted heads")
			t.Parallel()
			opts.Retention = d90
			s := readings(t, opts)
			c := testkit.NewClock(start)
			store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now, CursorKeys: secrets(1)}}, s)
			repo, other := s.For(store, acme), s.For(store, tenant.MustParse("acme2"))
			rnd := rand.New(rand.NewPCG(3, 4))
			all := directory{}
			var points, expired []tsdb.Point[reading]
			for i, site := range []string{"berlin", "berlin-2", "berli", "a#b", "ü", "~"} {
				for device := range 1 + 9*i {
					e := tsdb.NewEntity(site, fmt.Sprintf("d%d%%#", device*device))
					all[e] = float64(100*i + device)
					for k := range 1 + rnd.IntN(3)*rnd.IntN(40) {
						points = append(points, tsdb.Point[reading]{Entity: e, Time: start.Add(80*24*time.Hour - time.Duration(k)*time.Second), Value: reading{all[e] + float64(1000*k)}})
					}
					dead := tsdb.NewEntity(site, fmt.Sprintf("dead%d", device))
					expired = append(expired, tsdb.Point[reading]{Entity: dead, Time: start.Add(-time.Hour)})
				}
			}
			putAll(t, repo, append(points, expired...))
			putAll(t, other, []tsdb.Point[reading]{{Entity: tsdb.NewEntity("berlin", "foreign"), Time: start.Add(80 * 24 * time.Hour)}})
			c.Set(start.Add(91 * 24 * time.Hour))

			for _, prefix := range []tsdb.Prefix{tsdb.AllEntities(), tsdb.NewPrefix("berlin"), tsdb.NewPrefix("a#b"), tsdb.NewPrefix("~"), tsdb.NewPrefix("none")} {
				for _, size := range []int{1, 2, 7, 31, 500} {
					want := all.under(prefix)
					var got, names []tsdb.Entity
					for next, more := "", true; more; more = next != "" {
						page := must[tsdb.Page[reading]](t)(repo.Under(prefix).PageLatest(t.Context(), size, next))
						for _, p := range page.Points {
							if got = append(got, p.Entity); p.Value.TempC != all[p.Entity] {
								t.Errorf("%v has the value %v, want its newest %v", p.Entity, p.Value, all[p.Entity])
							}
						}
						if len(got) > len(want) || len(page.Points) < size && page.Next != "" {
							t.Fatalf("a page of %v with size %d has %d points and the cursor %q; %d of %d seen", prefix, size, len(page.Points), page.Next, len(got), len(want))
						}
						next = page.Next
					}
					for next, more := "", true; more; more = next != "" {
						page := must[tsdb.EntityPage](t)(repo.Under(prefix).PageEntities(t.Context(), size, next))
						names, next = append(names, page.Entities...), page.Next
						if len(names) > len(want) {
							t.Fatalf("the pages of entities of %v with size %d do not end", prefix, size)
						}
					}
					if !slices.Equal(got, want) || !slices.Equal(names, want) {
						t.Errorf("%v with size %d: Under.PageLatest returns %v, PageEntities %v, want %v", prefix, size, got, names, want)
					}
				}
			}

			stays := all.under(tsdb.AllEntities())
			var got []tsdb.Entity
			for next, more, round := "", true, 0; more; more, round = next != "", round+1 {
				page := must[tsdb.EntityPage](t)(repo.Under(tsdb.AllEntities()).PageEntities(t.Context(), 5, next))
				got, next = append(got, page.Entities...), page.Next
				// The entity at the cursor is deleted, and others are added before and after it.
				at := page.Entities[len(page.Entities)-1]
				_, err := repo.DeleteRange(t.Context(), at, tsdb.AllTime())
				stays = slices.DeleteFunc(stays, func(e tsdb.Entity) bool { return e == at })
				for _, site := range []string{"!", "zz"} {
					err = errors.Join(err, repo.Put(t.Context(), tsdb.NewEntity(site, fmt.Sprint("new", round)), c.Now(), reading{}))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if !slices.IsSortedFunc(got, tsdb.Entity.Compare) || len(slices.Compact(slices.Clone(got))) != len(got) {
				t.Errorf("while entities come and go, the pages are out of order or repeat an entity: %v", got)
			}
			for _, e := range stays {
				if !slices.Contains(got, e) {
					t.Errorf("%v stayed but is on no page", e)
				}
			}
		})
	}
}

// TestCursorsOfEntitiesAreBound: a cursor of a page of entities works only for its tenant, dataset, prefix and method.
// A forged one leads to no other data.
func TestCursorsOfEntitiesAreBound(t *testing.T) {
	for mode, keys := range map[string][][]byte{"sealed": secrets(1), "unsealed": nil} {
		s := readings(t, tsdb.SchemaOptions{})
		other := tsdb.MustDefine("readings2", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{CursorKeys: keys}}, s, other)
		repo := s.For(store, acme)
		var points []tsdb.Point[reading]
		for _, site := range []string{"berlin", "hamburg"} {
			for i := range 10 {
				points = append(points, tsdb.Point[reading]{Entity: tsdb.NewEntity(site, number(i)), Time: start, Value: reading{float64(i)}})
			}
		}
		putAll(t, repo, points)
		seconds(t, repo, 5)
		berlin := tsdb.NewPrefix("berlin")
		page := must[tsdb.Page[reading]](t)(repo.Under(berlin).PageLatest(t.Context(), 3, ""))
		names := must[tsdb.EntityPage](t)(repo.Under(berlin).PageEntities(t.Context(), 3, ""))
		history := must[tsdb.Page[reading]](t)(repo.Page(t.Context(), roof, tsdb.AllTime(), 3, ""))
		conn.Reset()
		refused := func(what string, err error) {
			t.Helper()
			if bad, ok := errors.AsType[*tsdb.InvalidError](err); !errors.Is(err, tsdb.ErrCursor) || !ok || bad.Field != "cursor" {
				t.Errorf("%s, %s: %v, want ErrCursor", mode, what, err)
			}
		}
		pageUnder := func(repo *tsdb.Repository[reading], p tsdb.Prefix, text string) error {
			page, err := repo.Under(p).PageLatest(t.Context(), 3, text)
			if err != nil && (page.Points != nil || page.Next != "") {
				t.Errorf("%s: the error comes with the page %v, want an empty page", mode, page)
			}
			return err
		}
		pageEntities := func(repo *tsdb.Repository[reading], p tsdb.Prefix, text string) error {
			_, err := repo.Under(p).PageEntities(t.Context(), 3, text)
			return err
		}
		refused("another tenant", pageUnder(s.For(store, tenant.MustParse("acme2")), berlin, page.Next))
		refused("another dataset", pageUnder(other.For(store, acme), berlin, page.Next))
		refused("another prefix", pageUnder(repo, tsdb.NewPrefix("hamburg"), page.Next))
		refused("all entities", pageUnder(repo, tsdb.AllEntities(), page.Next))
		refused("of names", pageUnder(repo, berlin, names.Next))
		refused("of points", pageEntities(repo, berlin, page.Next))
		refused("of a history", pageUnder(repo, berlin, history.Next))
		refused("of a history, for names", pageEntities(repo, berlin, history.Next))
		_, err := repo.Page(t.Context(), roof, tsdb.AllTime(), 3, page.Next)
		refused("of entities, for a history", err)
		raw := must[[]byte](t)(base64.RawURLEncoding.DecodeString(page.Next))
		for i := range raw {
			flipped := bytes.Clone(raw)
			flipped[i] ^= 1 << (i % 8)
			refused("changed", pageUnder(repo, berlin, base64.RawURLEncoding.EncodeToString(flipped)))
		}
		for i := 1; i < len(page.Next); i++ {
			refused("cut", pageUnder(repo, berlin, page.Next[:i]))
		}
		refused("too long", pageEntities(repo, berlin, strings.Repeat("A", 10_000)))

		scope := cursor.Scope{Kind: cursor.Newest, Tenant: "acme", Dataset: "readings", Path: "berlin"}
		for _, place := range []string{
			"hamburg#d-1", "berlin", "berlin#", "berlin#a#b", "", "#", "berlin#\xff", "berlin#a\x00", "berlin#%2g", "berlin#%61", "berlin2#a", "berlin#" + strings.Repeat("x", 5000),
		} {
			refused(fmt.Sprintf("forged, at %.20q", place), pageUnder(repo, berlin, cursor.Box{}.Write(scope, []byte(place))))
		}
		if calls := conn.Counts().Calls; len(calls) != 0 {
			t.Errorf("%s: refused calls sent requests: %v", mode, calls)
		}
		err = pageUnder(repo, berlin, cursor.Box{}.Write(scope, []byte("berlin#d-5")))
		if (err == nil) != (mode == "unsealed") {
			t.Errorf("%s: a forged cursor within the prefix: %v", mode, err)
		}
		for what, call := range map[string]func(size int, p tsdb.Prefix) error{
			"Under.PageLatest": func(size int, p tsdb.Prefix) error {
				_, err := repo.Under(p).PageLatest(t.Context(), size, "")
				return err
			},
			"Under.PageEntities": func(size int, p tsdb.Prefix) error {
				_, err := repo.Under(p).PageEntities(t.Context(), size, "")
				return err
			},
		} {
			for _, size := range []int{0, -1, 10_001} {
				if bad, ok := errors.AsType[*tsdb.InvalidError](call(size, berlin)); !ok || bad.Field != "size" {
					t.Errorf("%s with size %d is not refused", what, size)
				}
			}
			if bad, ok := errors.AsType[*tsdb.InvalidError](call(1, tsdb.Prefix{})); !ok || bad.Field != "prefix" {
				t.Errorf("%s of the zero prefix is not refused", what)
			}
		}
	}
}

// TestPagesOfEntitiesUnderFaults: a call returns a whole page or an error, and its cursor can be used again. It sends
// no more requests than it needs, and a point that does not decode keeps its place.
func TestPagesOfEntitiesUnderFaults(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	var points []tsdb.Point[reading]
	for i := range 200 {
		for k := range 50 {
			points = append(points, tsdb.Point[reading]{Entity: tsdb.NewEntity("berlin", padded(i)), Time: start.Add(-time.Duration(k) * time.Second), Value: reading{float64(i)}})
		}
	}
	putAll(t, repo, points)
	berlin := tsdb.NewPrefix("berlin")
	first := must[tsdb.Page[reading]](t)(repo.Under(berlin).PageLatest(t.Context(), 20, ""))
	conn.Reset()
	whole := must[tsdb.Page[reading]](t)(repo.Under(berlin).PageLatest(t.Context(), 20, first.Next))
	if n := conn.Counts().Calls[tsdbtest.ReadRows]; n > 21 {
		t.Errorf("a page of 20 entities took %d requests, want at most one for each entity and one more", n)
	}
	conn.Reset()
	if page := must[tsdb.EntityPage](t)(repo.Under(berlin).PageEntities(t.Context(), 100, "")); len(page.Entities) != 100 || conn.Counts().Calls[tsdbtest.ReadRows] > 101 {
		t.Errorf("a page of %d entities took %d requests", len(page.Entities), conn.Counts().Calls[tsdbtest.ReadRows])
	}
	for _, f := range []tsdbtest.Fault{tsdbtest.Fail(codes.PermissionDenied), tsdbtest.CutStream(1, codes.PermissionDenied)} {
		conn.Inject(f)
		if page, err := repo.Under(berlin).PageLatest(t.Context(), 20, first.Next); err == nil || page.Points != nil || page.Next != "" {
			t.Errorf("under a fault: page %v, error %v; want only the error", page, err)
		}
		conn.Clear()
	}
	conn.Inject(tsdbtest.CutStream(3, codes.Unavailable).On(tsdbtest.ReadRows).Times(2))
	if page, err := repo.Under(berlin).PageLatest(t.Context(), 20, first.Next); err != nil || !slices.Equal(page.Points, whole.Points) {
		t.Errorf("with a stream cut twice: %d points, %v", len(page.Points), err)
	}
	conn.Clear()

	broken := tsdb.NewEntity("berlin", padded(1))
	m := bigtable.NewMutation()
	m.DeleteRow()
	m.Set("keep", "p:json", bigtable.Time(start), []byte(`{"temp_c":`))
	apply(t, table, key(broken, start), m)
	page, err := repo.Under(berlin).PageLatest(t.Context(), 2, "")
	var bad tsdb.PointErrors
	if !errors.As(err, &bad) || len(bad) != 1 || bad[0].Entity != broken || len(page.Points) != 2 || page.Points[1].Entity != broken {
		t.Errorf("a page with a point that does not decode: %v, %v", page, err)
	}
	page, err = repo.Under(berlin).PageLatest(t.Context(), 2, page.Next)
	if err != nil || page.Points[0].Entity != tsdb.NewEntity("berlin", padded(2)) {
		t.Errorf("the next page: %v, %v", page, err)
	}
}
