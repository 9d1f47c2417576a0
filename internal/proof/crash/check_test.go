package crash_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/crash"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

// check opens the files of a folder, compares what is there with the ledger, and writes to them.
func (l *ledger) check(ctx context.Context, dir string) (wrong []string) {
	wrong = l.checkOpen(ctx, dir, true)
	if len(wrong) == 0 {
		wrong = l.checkOpen(ctx, dir, false)
	}
	return wrong
}

// checkOpen is check with the store opened for the first time after a crash, or for the second time.
func (l *ledger) checkOpen(ctx context.Context, dir string, first bool) (wrong []string) {
	w, err := open(ctx, dir, patienceOf(crash.Fault{}))
	if err != nil {
		return []string{fmt.Sprintf("it does not open: %v", err)}
	}
	defer func() {
		if err := w.close(ctx); err != nil {
			wrong = append(wrong, fmt.Sprintf("it does not close: %v", err))
		}
	}()
	if !first {
		for _, repo := range []*tsdb.Repository[int64]{plain.For(w.store, acme), queued.For(w.store, acme)} {
			if p, err := repo.Latest(ctx, afterwards); err != nil || p.Value != 1 {
				wrong = append(wrong, fmt.Sprintf("a point of %s that was written after the crash is %v, %v", repo.Schema().Name(), p.Value, err))
			}
		}
		return wrong
	}
	for name := range l.erased {
		if err := erase(ctx, w.store, name); err != nil {
			wrong = append(wrong, fmt.Sprintf("the erasure of %s cannot continue: %v", name, err))
		}
	}
	if err := w.w.Flush(ctx); err != nil {
		wrong = append(wrong, fmt.Sprintf("the journal cannot be delivered: %v, with %+v", err, w.w.Stats()))
	}
	found := &finding{ctx: ctx, values: map[string]string{}}
	collect(found, plain.For(w.store, acme), number64)
	collect(found, heads.For(w.store, acme), number64)
	collect(found, queued.For(w.store, acme), number64)
	collect(found, once.For(w.store, acme), number64)
	collectFields(found, merged.For(w.store, acme))
	l.checkHeads(found, w.store)
	if p, err := tenants.Load(ctx, w.store, acme); err == nil {
		found.values["profile"] = p.Name
	} else if !errors.Is(err, tsdb.ErrNotFound) {
		found.say("the profile cannot be read: %v", err)
	}
	for _, r := range []*rollup.Rollup[int64]{byStream, byMessage, byOnce} {
		l.checkSum(found, w.store, r)
	}
	l.checkFirsts(found, w)
	l.checkValues(found)
	l.checkExports(found, w)
	if err := plain.For(w.store, acme).Put(ctx, afterwards, start, 1); err != nil {
		found.say("it takes no point: %v", err)
	}
	if err := queued.For(w.store, acme).Via(w.w).Enqueue(ctx, afterwards, start, 1); err != nil {
		found.say("its journal takes no point: %v", err)
	}
	return append(wrong, found.wrong...)
}

// afterwards is an entity that is written after the crash.
var afterwards = tsdb.NewEntity("afterwards")

// finding is what a folder holds.
type finding struct {
	ctx    context.Context
	values map[string]string
	wrong  []string
}

func (f *finding) say(format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

func (f *finding) add(key, value string) {
	if old, twice := f.values[key]; twice {
		f.say("%s is there twice, as %s and %s", key, old, value)
	}
	f.values[key] = value
}

func number64(v int64) string { return fmt.Sprint(v) }

// collect reads all points of a repository.
func collect[T any](f *finding, repo *tsdb.Repository[T], text func(T) string) {
	each(f, repo, func(key string, v T) { f.add(key, text(v)) })
}

func each[T any](f *finding, repo *tsdb.Repository[T], visit func(key string, v T)) {
	for e, err := range repo.Under(tsdb.AllEntities()).Entities(f.ctx, tsdb.AllTime()) {
		if err != nil {
			f.say("the entities of a dataset cannot be read: %v", err)
			return
		}
		last := time.Time{}
		for p, err := range repo.Range(f.ctx, e, tsdb.AllTime()) {
			if err != nil {
				f.say("the points of %s cannot be read: %v", e, err)
				return
			}
			if !last.IsZero() && !p.Time.Before(last) {
				f.say("the points of %s are out of order: %v after %v", e, p.Time, last)
			}
			last = p.Time
			visit(fmt.Sprintf("%s %s %d", repo.Schema().Name(), e, int(p.Time.Sub(start).Seconds())), p.Value)
		}
	}
}

// collectFields reads the fields of merged points, each under a key of its own.
func collectFields(f *finding, repo *tsdb.Repository[codec.Record]) {
	each(f, repo, func(key string, v codec.Record) {
		for name, value := range v.All() {
			n, _ := value.Int()
			f.add(key+" "+name, fmt.Sprint(n))
		}
	})
}

// checkHeads compares what heads answer with the newest points. They may differ where a write is unknown, until it is
// repeated.
func (l *ledger) checkHeads(f *finding, store *tsdb.Store) {
	repo := heads.For(store, acme)
	devices := []tsdb.Entity{device(0), device(1), device(2)}
	all, err := repo.LatestMany(f.ctx, devices, 2)
	if err != nil {
		f.say("the heads cannot be read: %v", err)
		return
	}
	for i, h := range all {
		if slices.ContainsFunc(slices.Collect(maps.Keys(l.values)), func(key string) bool {
			return strings.HasPrefix(key, fmt.Sprintf("heads %s ", devices[i])) && len(l.values[key]) > 1
		}) {
			continue
		}
		points, err := repo.LatestN(f.ctx, devices[i], 2)
		if err != nil || !slices.Equal(h.Points, points) {
			f.say("the head of %v has %v, and its newest points are %v, %v", devices[i], h.Points, points, err)
		}
	}
}

// checkSum compares a sum of events, each of which is 1, with those that were acknowledged and those that are unknown.
func (l *ledger) checkSum(f *finding, store *tsdb.Store, r *rollup.Rollup[int64]) {
	total, err := rollup.For(r, sums.For(store, acme)).Total(f.ctx, counted, tsdb.AllTime())
	if err != nil {
		f.say("the sum %s cannot be read: %v", r.Name(), err)
		return
	}
	least, most := int64(0), int64(0)
	for key, possible := range l.values {
		if strings.HasPrefix(key, r.Name()+" ") && slices.Contains(possible, "1") {
			most++
			if len(possible) == 1 {
				least++
			}
		}
	}
	sum := 0.0
	if len(total.Values) > 0 && total.Points > 0 {
		sum = total.Values[0].Sum
	}
	if total.Points < least || total.Points > most || sum != float64(total.Points) {
		f.say("the sum %s counts %d events with the sum %v; %d were acknowledged, and %d more may be there", r.Name(), total.Points, sum, least, most-least)
	}
}

// checkFirsts compares the points whose first write wins, and the dead letters of their other writes.
func (l *ledger) checkFirsts(f *finding, w *world) {
	letters := map[string]int{}
	for d, err := range w.w.DeadLetters(f.ctx) {
		if err != nil {
			f.say("the dead letters cannot be read: %v", err)
			return
		}
		letters[letterText(d)]++
	}
	for key, list := range l.firsts {
		stored, there := f.values[key]
		delete(f.values, key)
		known := !there
		for _, a := range list {
			text := key + " " + a.value
			n := letters[text]
			delete(letters, text)
			dropped, maybe := l.dropped[text]
			switch {
			case there && a.value == stored && a.outcome != 'r':
				known = true
				if n > 0 {
					f.say("%s is stored as %s, and has %d dead letters", key, stored, n)
				}
			case a.outcome == 's' && !a.journal:
				f.say("%s was acknowledged as %s, and is %q", key, a.value, stored)
			case a.outcome == 's' && !there:
				f.say("%s was acknowledged as %s, and is not there", key, a.value)
			case n > 1, n == 1 && dropped, n == 0 && a.outcome == 's' && !maybe, n > 0 && (a.outcome == 'r' || !a.journal):
				f.say("%s has %d dead letters for %s, with the outcome %c; dropped %v", key, n, a.value, a.outcome, dropped)
			}
		}
		if !known {
			f.say("%s is %s, which was never written or was refused", key, stored)
		}
	}
	for text, n := range letters {
		f.say("there are %d dead letters of %s, which was never refused", n, text)
	}
}

// checkValues compares all other keys.
func (l *ledger) checkValues(f *finding) {
	for _, key := range slices.Sorted(maps.Keys(l.values)) {
		if word, _, _ := strings.Cut(key, " "); slices.Contains([]string{"stream", "message", "once"}, word) {
			continue
		}
		if got := f.values[key]; !slices.Contains(l.values[key], got) {
			f.say("%s is %q, and may be %q", key, got, l.values[key])
		}
		delete(f.values, key)
	}
	for key, value := range f.values {
		f.say("%s is %s, and was never written", key, value)
	}
}
