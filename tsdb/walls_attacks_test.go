package tsdb_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

// far is later than all points.
var far = start.AddDate(1, 0, 0)

// attacks are the calls of TestHostileTenants, by type or package and name. Each compares its result with what its
// tenant has stored.
var attacks = map[string]func(h *walls, a attack) error{
	"Repository.Put": func(h *walls, a attack) error {
		v := h.value(a)
		err := a.repo.Put(a.ctx, a.entity, a.at, v)
		if err == nil {
			h.put(a.place, a.at, v)
		}
		return err
	},
	"Repository.PutIfAbsent": func(h *walls, a attack) error {
		v := h.value(a)
		_, there := h.points[a.place][a.at]
		stored, err := a.repo.PutIfAbsent(a.ctx, a.entity, a.at, v)
		if err == nil && stored == there {
			return fmt.Errorf("PutIfAbsent = %t; a point exists: %t", stored, there)
		}
		if stored {
			h.put(a.place, a.at, v)
		}
		return err
	},
	"Repository.PutMany": func(h *walls, a attack) error {
		points := []tsdb.Point[string]{
			{Entity: a.entity, Time: a.at, Value: h.value(a)},
			{Entity: tsdb.NewEntity(pick(h.Rand, hostileEntities)...), Time: a.at.Add(time.Minute), Value: h.value(a)},
		}
		outcomes, err := a.repo.PutMany(a.ctx, points)
		h.stored(a, points, outcomes)
		return err
	},
	"Repository.Get": func(h *walls, a attack) error {
		p, err := a.repo.Get(a.ctx, a.entity, a.at)
		v, there := h.points[a.place][a.at]
		return h.one(p, err, v, there)
	},
	"Repository.Latest": func(h *walls, a attack) error {
		p, err := a.repo.Latest(a.ctx, a.entity, pick(h.Rand, [][]tsdb.ReadOption{nil, {tsdb.MaxStale(time.Hour)}})...)
		v, there := first(h.want(a.place, far))
		return h.one(p, err, v, there)
	},
	"Repository.AsOf": func(h *walls, a attack) error {
		p, err := a.repo.AsOf(a.ctx, a.entity, a.at)
		v, there := first(h.want(a.place, a.at))
		return h.one(p, err, v, there)
	},
	"Repository.LatestN": func(h *walls, a attack) error {
		points, err := a.repo.LatestN(a.ctx, a.entity, 1000)
		if err == nil {
			h.same("LatestN", values(points), h.want(a.place, far))
		}
		return err
	},
	"Repository.LatestMany": func(h *walls, a attack) error {
		answers, err := latestMany(a.ctx, a.repo, a.all(), pick(h.Rand, [][]tsdb.ReadOption{nil, {tsdb.MaxStale(time.Hour)}})...)
		if err != nil {
			return err
		}
		for i, e := range a.all() {
			want, _ := first(h.want(a.with(e), far))
			h.same("LatestMany", []string{answers[i].Point.Value}, []string{want})
		}
		return nil
	},
	"Repository.LatestMany of several": func(h *walls, a attack) error {
		histories, err := a.repo.LatestMany(a.ctx, a.all(), 1000)
		if err != nil {
			return err
		}
		for i, e := range a.all() {
			h.same("LatestMany", values(histories[i].Points), h.want(a.with(e), far))
		}
		return nil
	},
	"Repository.LatestFields": func(h *walls, a attack) error {
		f, err := a.repo.LatestFields(a.ctx, a.entity, pick(h.Rand, []tsdb.FieldOptions{{}, {AsOf: far}}))
		v, there := first(h.want(a.place, far))
		return h.one(tsdb.Point[string]{Entity: f.Entity, Value: f.Value}, err, v, there)
	},
	"Repository.LatestFieldsMany": func(h *walls, a attack) error {
		all, err := a.repo.LatestFieldsMany(a.ctx, a.all(), tsdb.FieldOptions{})
		if err != nil {
			return err
		}
		for i, e := range a.all() {
			want, _ := first(h.want(a.with(e), far))
			h.same("LatestFieldsMany", []string{all[i].Value}, []string{want})
		}
		return nil
	},
	"PrefixReader.LatestFields": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		var got, want []string
		for f, err := range a.repo.Under(prefix).LatestFields(a.ctx, tsdb.FieldOptions{}) {
			if err != nil {
				return err
			}
			got = append(got, f.Value)
		}
		for _, p := range h.of(a.id, a.dataset, part) {
			v, _ := first(h.want(p, far))
			want = append(want, v)
		}
		slices.Sort(got)
		slices.Sort(want)
		h.same("PrefixReader.LatestFields", got, want)
		return nil
	},
	"PrefixReader.Latest": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		var got, want []string
		for p, err := range a.repo.Under(prefix).Latest(a.ctx) {
			if err != nil {
				return err
			}
			got = append(got, p.Value)
		}
		for _, p := range h.of(a.id, a.dataset, part) {
			want = append(want, h.want(p, far)[0])
		}
		slices.Sort(got)
		slices.Sort(want)
		h.same("PrefixReader.Latest", got, want)
		return nil
	},
	"Repository.Range": func(h *walls, a attack) error {
		var got []string
		for p, err := range a.repo.Range(a.ctx, a.entity, tsdb.AllTime()) {
			if err != nil {
				return err
			}
			got = append(got, p.Value)
		}
		h.same("Range", got, h.want(a.place, far))
		return nil
	},
	"Repository.Page": func(h *walls, a attack) error {
		q := query{Entity: a.entity}
		for text, of := range h.cursors {
			raw := []byte(text)
			raw[h.IntN(len(raw))] ^= 1
			for _, forged := range []string{text, string(raw)} {
				if of == a.place && forged == text {
					continue
				}
				page, err := a.repo.Page(a.ctx, q.Entity, q.In, 5, forged, q.Order)
				if err != nil && !errors.Is(err, tsdb.ErrCursor) {
					return err
				}
				// Two characters at a cursor's end may encode the same bytes.
				if err == nil && of != a.place {
					return fmt.Errorf("the cursor of %v returns %v, %w", of, page.Points, err)
				}
			}
		}
		mine := cursor.Scope{Kind: cursor.Points, Tenant: "acme2", Dataset: a.dataset, Path: inside.Of(a.entity).Path(), Newest: last(tsdb.Nanoseconds)}
		if _, err := a.repo.Page(a.ctx, q.Entity, q.In, 5, cursor.Box{}.WriteTime(mine, start.UnixNano()), q.Order); err != nil && !errors.Is(err, tsdb.ErrCursor) {
			return err
		} else if err == nil && a.id.String() != "acme2" {
			return errors.New("a forged cursor of acme2 is taken")
		}
		var got []string
		for next, more := "", true; more; more = next != "" {
			page, err := a.repo.Page(a.ctx, q.Entity, q.In, 1, next, q.Order)
			if err != nil {
				return err
			}
			if got, next = append(got, values(page.Points)...), page.Next; next != "" {
				h.cursors[next] = a.place
			}
		}
		h.same("Page", got, h.want(a.place, far))
		return nil
	},
	"Repository.Delete": func(h *walls, a attack) error {
		err := a.repo.Delete(a.ctx, a.entity, a.at)
		if err == nil {
			h.drop(func(p place, at time.Time) bool { return p == a.place && at.Equal(a.at) })
		}
		return err
	},
	"Repository.DeleteRange": func(h *walls, a attack) error {
		in := tsdb.Since(a.at)
		if a.at.Minute()%2 == 1 {
			in = tsdb.AllTime()
		}
		_, err := a.repo.DeleteRange(a.ctx, a.entity, in)
		if err == nil {
			h.drop(func(p place, at time.Time) bool { return p == a.place && in.Contains(at) })
		}
		return err
	},
	"Repository.DeletePrefix": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		_, err := a.repo.DeletePrefix(a.ctx, prefix)
		if err == nil {
			below := h.of(a.id, a.dataset, part)
			h.drop(func(p place, _ time.Time) bool { return slices.Contains(below, p) })
		}
		return err
	},

	"Sink.Enqueue": func(h *walls, a attack) error {
		v := h.value(a)
		return h.taken(a, v, a.repo.Via(h.writer).Enqueue(a.ctx, a.entity, a.at, v))
	},
	"Sink.TryEnqueue": func(h *walls, a attack) error {
		v := h.value(a)
		return h.taken(a, v, a.repo.Via(h.writer).TryEnqueue(a.ctx, a.entity, a.at, v))
	},
	"Sink.EnqueueFunc": func(h *walls, a attack) error {
		v := h.value(a)
		return h.taken(a, v, a.repo.Via(h.writer).EnqueueFunc(a.ctx, a.entity, a.at, v, func(tsdb.Outcome) {}))
	},
	"Sink.EnqueueMany": func(h *walls, a attack) error {
		points := []tsdb.Point[string]{{Entity: a.entity, Time: a.at, Value: h.value(a)}, {Entity: a.entity, Time: a.at.Add(time.Minute), Value: h.value(a)}}
		outcomes, err := a.repo.Via(h.writer).EnqueueMany(a.ctx, points)
		h.stored(a, points, outcomes)
		return err
	},

	"Store.EnsureView": func(h *walls, a attack) error { return h.store.EnsureView(a.ctx, a.id, h.datasets()...) },

	"tenants.Onboard": func(h *walls, a attack) error {
		_, err := tenants.Onboard(a.ctx, h.store, a.id, tenants.Profile{Name: h.value(a)}, tenants.OnboardOptions{Replace: true})
		if h.erased[a.id] && errors.Is(err, tsdb.ErrErased) {
			return nil
		}
		return err
	},
	"tenants.Load": func(h *walls, a attack) error {
		p, err := tenants.Load(a.ctx, h.store, a.id)
		if errors.Is(err, tsdb.ErrNotFound) || err == nil && strings.HasPrefix(p.Name, "of:"+a.id.String()+";") {
			return nil
		}
		return errors.Join(err, fmt.Errorf("got the profile of %q", p.Name))
	},
	"tenants.KeptFor": func(h *walls, a attack) error {
		kept, err := tenants.KeptFor(a.ctx, h.store, a.id)
		if err == nil && len(kept) == 0 {
			err = errors.New("no dataset")
		}
		return err
	},
	"tenants.Usage": func(h *walls, a attack) error {
		rep, err := tenants.Usage(a.ctx, h.store, a.id, tenants.UsageOptions{Exact: true})
		if err != nil {
			return err
		}
		got, want := int64(0), 0
		for _, k := range rep.Kinds {
			got += k.Points
		}
		for p, points := range h.points {
			if p.id == a.id {
				want += len(points)
			}
		}
		if got != int64(want) {
			return fmt.Errorf("usage counts %d points, want %d: %+v", got, want, rep)
		}
		return nil
	},
	"tenants.List": func(h *walls, a attack) error {
		for got, err := range tenants.List(a.ctx, h.store, tenants.ListOptions{}) {
			if err != nil {
				return err
			}
			if !slices.Contains(hostileTenants, got.ID.String()) || (got.Erased != "") != h.erased[got.ID] {
				return fmt.Errorf("%+v is listed, want a tenant of this test in its state", got)
			}
		}
		return nil
	},
	"tenants.Erase": func(h *walls, a attack) error {
		opts := erasing
		opts.DryRun = len(h.erased) > 1 && !h.erased[a.id]
		_, err := tenants.Erase(a.ctx, h.store, a.id, opts)
		if err == nil && !opts.DryRun {
			h.erased[a.id] = true
			h.drop(func(p place, _ time.Time) bool { return p.id == a.id })
		}
		return err
	},
	"tenants.EraseEntity": func(h *walls, a attack) error {
		opts, parts := erasing, a.entity.Parts()
		opts.Keep = 1
		_, err := tenants.EraseEntity(a.ctx, h.store, a.id, a.dataset, map[string]string{"site": parts[0], "device": parts[1]}, opts)
		if err == nil {
			h.drop(func(p place, _ time.Time) bool { return p == a.place })
		}
		h.clock.Add(5 * time.Second) // the mark expires
		return err
	},
	"tenants.ReadmitEntity": func(h *walls, a attack) error {
		parts := a.entity.Parts()
		err := tenants.ReadmitEntity(a.ctx, h.store, a.id, a.dataset, map[string]string{"site": parts[0], "device": parts[1]})
		if errors.Is(err, tsdb.ErrNotFound) { // EraseEntity leaves no active mark
			return nil
		}
		return err
	},
	"tenants.Remove": func(h *walls, a attack) error {
		rep, err := tenants.Remove(a.ctx, h.store, tenants.Part{Dataset: a.dataset}, tenants.RemoveOptions{DryRun: true})
		for _, k := range rep.Kinds {
			if k.Dataset != a.dataset {
				return fmt.Errorf("%+v would be deleted", k)
			}
		}
		if errors.Is(err, tsdb.ErrNotFound) {
			return nil
		}
		return err
	},
	"tenants.Retire": func(h *walls, a attack) error {
		err := tenants.Retire(a.ctx, h.store, tenants.Part{Dataset: a.dataset, Rollup: "none"})
		if errors.Is(err, tsdb.ErrNotFound) {
			return nil
		}
		return err
	},
	"tenants.Release": func(h *walls, a attack) error {
		err := tenants.Release(a.ctx, h.store, tenants.Part{Dataset: a.dataset})
		if errors.Is(err, tsdb.ErrNotFound) {
			return nil
		}
		return err
	},
	"tenants.Erasure": func(h *walls, a attack) error {
		rep, err := tenants.Erasure(a.ctx, h.store, a.id)
		if errors.Is(err, tsdb.ErrNotFound) && !h.erased[a.id] {
			return nil
		}
		if err == nil && (rep.Tenant != a.id || (rep.State == tenants.Erased) != h.erased[a.id]) {
			return fmt.Errorf("%+v", rep)
		}
		return err
	},
	"tenants.Readmit": func(h *walls, a attack) error {
		err := tenants.Readmit(a.ctx, h.store, a.id)
		if errors.Is(err, tsdb.ErrNotFound) && !h.erased[a.id] {
			return nil
		}
		if err == nil && h.erased[a.id] {
			delete(h.erased, a.id)
			if h.views {
				err = h.store.EnsureView(a.ctx, a.id, h.datasets()...)
			}
		}
		return err
	},

	"transfer.Export": func(h *walls, a attack) error {
		f := exported{id: a.id, points: map[place]map[time.Time]string{}}
		var buf bytes.Buffer
		got, err := transfer.Export(a.ctx, h.store, a.id, &buf, transfer.ExportOptions{})
		for _, n := range hostileTenants {
			if n != a.id.String() && bytes.Contains(buf.Bytes(), []byte("of:"+n+";")) {
				return fmt.Errorf("the export holds points of %s", n)
			}
		}
		if err != nil {
			return err
		}
		n := int64(0)
		for p, points := range h.points {
			if p.id == a.id {
				f.points[p] = maps.Clone(points)
				n += int64(len(points))
			}
		}
		if got.Points != n {
			return fmt.Errorf("%d points in the export, want %d", got.Points, n)
		}
		f.bytes = buf.Bytes()
		h.files = append(h.files, f)
		return nil
	},
	"transfer.Import": func(h *walls, a attack) error {
		for _, f := range h.files {
			if f.id == a.id {
				continue
			}
			if _, err := transfer.Import(a.ctx, h.store, a.id, bytes.NewReader(f.bytes), transfer.ImportOptions{}); !errors.Is(err, transfer.ErrTenant) {
				return errors.Join(fmt.Errorf("the export of %s", f.id), err)
			}
		}
		var own bytes.Buffer // the tenant's own points, imported again
		if _, err := transfer.Export(a.ctx, h.store, a.id, &own, transfer.ExportOptions{}); err != nil {
			return err
		}
		if i := slices.IndexFunc(h.files, func(f exported) bool { return f.id == a.id }); i >= 0 {
			own = *bytes.NewBuffer(h.files[i].bytes)
			for p, points := range h.files[i].points {
				for at, v := range points {
					h.put(p, at, v)
				}
			}
		}
		got, err := transfer.Import(a.ctx, h.store, a.id, &own, transfer.ImportOptions{})
		if err == nil && got.Stored != got.Points {
			return fmt.Errorf("%+v", got)
		}
		return err
	},
}

// all returns all entities of the dataset, two of them the same.
func (a attack) all() (all []tsdb.Entity) {
	for _, parts := range hostileEntities {
		all = append(all, tsdb.NewEntity(parts...))
	}
	return append(all, a.entity)
}

func (a attack) with(e tsdb.Entity) place { return place{a.id, a.dataset, e} }

// prefix returns the prefix of a call, and the first key field of the entities below it; "" for all.
func (a attack) prefix(h *walls) (tsdb.Prefix, string) {
	if h.IntN(2) == 0 {
		return tsdb.AllEntities(), ""
	}
	return tsdb.NewPrefix(a.entity.Parts()[0]), a.entity.Parts()[0]
}

func first(of []string) (string, bool) {
	if len(of) == 0 {
		return "", false
	}
	return of[0], true
}

// one compares the result of a read of one point.
func (h *walls) one(p tsdb.Point[string], err error, want string, there bool) error {
	switch {
	case errors.Is(err, tsdb.ErrNotFound) && !there:
		return nil
	case err == nil && (p.Value != want || !there):
		return fmt.Errorf("got %q, want %q", p.Value, want)
	}
	return err
}

// taken records a point that a writer accepted.
func (h *walls) taken(a attack, v string, err error) error {
	if err == nil {
		h.put(a.place, a.at, v)
	}
	return err
}

// stored records which of several points were stored.
func (h *walls) stored(a attack, points []tsdb.Point[string], outcomes []tsdb.Outcome) {
	for i, o := range outcomes {
		if o.Err == nil {
			h.put(a.with(points[i].Entity), points[i].Time, points[i].Value)
		} else if a.id != noisy && errors.Is(o.Err, limit.ErrExceeded) {
			h.t.Errorf("%s, which has no limits, was limited: %v", a.id, o.Err)
		}
	}
}

func (h *walls) datasets() (out []tsdb.Dataset) {
	for _, s := range h.schemas {
		out = append(out, s)
	}
	return out
}
