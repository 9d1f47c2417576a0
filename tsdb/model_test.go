package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// truth is the visible points of one dataset by entity, newest first, as a plain pass over all rows finds them.
type truth map[string][]string

// look evaluates each row by docs/format.md alone.
func readTruth(t *testing.T, table *bigtable.Table, salts int, now time.Time, classes []gc.Class, ages []time.Duration) truth {
	t.Helper()
	all := rows(t, table)
	keys := make([]string, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	form := regexp.MustCompile(`^acme#readings#(?:(\d\d)#)?([^#]+#[^#]+)#(\d{19})$`)
	escapes := regexp.MustCompile(`^(?:[^\x00-\x25]|%[01][0-9A-F]|%2[0-5]|#)+$`)
	found := truth{}
	for _, key := range keys {
		m := form.FindStringSubmatch(key)
		if m == nil || (m[1] != "") != (salts > 0) || !escapes.MatchString(m[2]) {
			continue
		}
		if salts > 0 {
			h := fnv.New64a()
			h.Write([]byte(m[2]))
			if m[1] != fmt.Sprintf("%02d", h.Sum64()%uint64(salts)) {
				continue
			}
		}
		reverse, err := strconv.ParseUint(m[3], 10, 64)
		if err != nil || reverse > 1<<63-1 {
			continue
		}
		at := time.Unix(0, int64(1<<63-1-reverse)).UTC()
		reach := time.Duration(-1) // rows before the cutoff of the longest class are ignored
		for _, age := range ages {
			if reach = max(reach, age); age == 0 {
				reach = -1
				break
			}
		}
		if reach >= 0 && at.Before(now.Add(-reach).Add(time.Millisecond-1).Truncate(time.Millisecond)) {
			continue
		}
		value, unknown := "", ""
		for i, class := range classes {
			for _, item := range all[key][class.Name] {
				visible := ages[i] == 0 || !item.Timestamp.Time().Before(now.Add(-ages[i]).Add(time.Millisecond-1).Truncate(time.Millisecond))
				switch {
				case !visible:
				case item.Column == class.Name+":p:str" && value == "":
					value = string(item.Value)
				case strings.HasPrefix(item.Column, class.Name+":p:"):
					unknown = "unknown"
				}
			}
		}
		if value == "" {
			value = unknown
		}
		if value != "" {
			found[m[2]] = append(found[m[2]], at.Format(time.RFC3339Nano)+" "+value)
		}
	}
	return found
}

// said formats the result of a read for comparison.
func resultText(p tsdb.Point[string], err error) string {
	switch {
	case errors.Is(err, codec.ErrUnknownTag):
		p.Value = "unknown"
	case errors.Is(err, codec.ErrCorrupt):
		p.Value = "\xff"
	case err != nil:
		return err.Error()
	}
	return p.Time.Format(time.RFC3339Nano) + " " + p.Value
}

// TestReadsEqualABruteForcePass compares every read of the newest points with a plain pass over the table, on random
// histories: late, future, rewritten, deleted and expired points in two classes, corrupt payloads, payloads in unknown
// formats, and rows of other programs.
func TestReadsEqualABruteForcePass(t *testing.T) {
	h1, h3 := gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}, gc.Class{Name: "h3", Policy: gc.MaxAge(3 * time.Hour)}
	keep := gc.Class{Name: "keep", Policy: gc.Never()}
	for seed := range uint64(6) {
		if testkit.Raced && seed != 2 {
			continue // one history is enough
		}
		rnd := rand.New(rand.NewPCG(seed, 0))
		salts := []int{0, 0, 3, 17}[seed%4]
		opts, older := tsdb.SchemaOptions{Retention: h1, FormerClasses: []gc.Class{h3}, Salts: salts}, tsdb.SchemaOptions{Retention: h3, FormerClasses: []gc.Class{h1}, Salts: salts}
		classes, ages := []gc.Class{h1, h3}, []time.Duration{time.Hour, 3 * time.Hour}
		switch seed % 3 {
		case 1:
			opts, older = tsdb.SchemaOptions{Salts: salts}, tsdb.SchemaOptions{Salts: salts}
			classes, ages = []gc.Class{keep}, []time.Duration{0}
		case 2:
			opts, older = tsdb.SchemaOptions{Retention: h1, Salts: salts}, tsdb.SchemaOptions{Retention: h1, Salts: salts}
			classes, ages = []gc.Class{h1}, []time.Duration{time.Hour}
		}
		define := func(o tsdb.SchemaOptions) *tsdb.Schema[string] {
			return must[*tsdb.Schema[string]](t)(tsdb.Define("readings", tsdb.Key("site", "device"), codec.String(), o))
		}
		c := testkit.NewClock(start)
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, define(opts))
		repo := define(opts).For(store, acme)
		if seed%2 == 0 {
			fillAtRandom(t, rnd, c, repo, define(older).For(store, acme), table, classes, salts)
		} else {
			fillAtRandom(t, rnd, c, define(older).For(store, acme), repo, table, classes, salts)
		}
		for _, now := range []time.Time{start, start.Add(70 * time.Minute), start.Add(170 * time.Minute), start.Add(6 * time.Hour)} {
			c.Set(now)
			compareReads(t, fmt.Sprintf("seed %d, %d salts, now %v", seed, salts, now.Sub(start)), repo, readTruth(t, table, salts, now, classes, ages))
		}
	}
}

var sites = []string{"berlin", "berlin-2", "ber", "b%", "#", "東京"}

// fillAtRandom writes through two repositories that write in different classes.
func fillAtRandom(t *testing.T, rnd *rand.Rand, c *clock, one, two *tsdb.Repository[string], table *bigtable.Table, classes []gc.Class, salts int) {
	t.Helper()
	ctx := context.Background()
	defer func(now time.Time) { c.Set(now) }(c.Now())
	at := func() time.Time { return start.Add(time.Duration(rnd.IntN(5*3600)-4*3600) * time.Second) }
	c.Set(start.Add(-4 * time.Hour)) // so that all times may be written
	var keys []string
	var muts []*bigtable.Mutation
	foreign := func(key, family, qualifier, value string, t time.Time) {
		m := bigtable.NewMutation()
		m.Set(family, qualifier, bigtable.Time(t.Truncate(time.Millisecond)), []byte(value))
		keys, muts = append(keys, key), append(muts, m)
	}
	for _, site := range sites[:2+rnd.IntN(len(sites)-2)] {
		for n := range 1 + rnd.IntN(25) {
			e := tsdb.NewEntity(site, fmt.Sprint("d", n))
			length := []int{1, 2, 5, 20, 60}[rnd.IntN(5)]
			var points []tsdb.Point[string]
			for i := range length {
				points = append(points, tsdb.Point[string]{Entity: e, Time: at(), Value: fmt.Sprint("v", i)})
			}
			half := rnd.IntN(length + 1)
			_, err1 := one.PutMany(ctx, points[:half])
			_, err2 := two.PutMany(ctx, points[half:])
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			for range rnd.IntN(3) {
				if err := one.Delete(ctx, e, points[rnd.IntN(length)].Time); err != nil {
					t.Fatal(err)
				}
			}
			salt := ""
			if salts > 0 {
				h := fnv.New64a()
				h.Write([]byte(inside.Of(e).Path()))
				salt = fmt.Sprintf("%02d#", h.Sum64()%uint64(salts))
			}
			prefix, family := "acme#readings#"+salt+inside.Of(e).Path(), classes[rnd.IntN(len(classes))].Name
			when := at()
			reverse := fmt.Sprintf("#%019d", (1<<63-1)-when.UnixNano())
			switch rnd.IntN(7) {
			case 0:
				foreign(prefix+reverse, family, "p:str", "\xff", when)
			case 1:
				foreign(prefix+reverse, family, "p:cbor", "x", when)
			case 2:
				for i := range rnd.IntN(80) {
					foreign(fmt.Sprintf("%s#x%d", prefix, i), family, "p:str", "foreign", when)
					foreign(fmt.Sprintf("%s#%05d", prefix, i), family, "p:str", "foreign", when)
				}
			case 3:
				foreign(prefix+reverse, family, "other", "foreign", when)
			case 4:
				foreign(prefix+reverse, family, "p:str", "another time", at())
			case 5:
				foreign("acme#readings#"+strings.TrimPrefix(prefix, "acme#readings#"+salt)+"a#"+reverse, family, "p:str", "foreign", when)
				foreign("acme#readings#99#"+inside.Of(e).Path()+reverse, family, "p:str", "foreign", when)
				foreign("acme#readings!head#"+salt+inside.Of(e).Path(), family, "p:str", "foreign", when)
				foreign("acme2#readings#"+salt+inside.Of(e).Path()+reverse, family, "p:str", "foreign", when)
			}
		}
	}
	if len(keys) > 0 {
		if errs, err := table.ApplyBulk(ctx, keys, muts); err != nil || errs != nil {
			t.Fatal(errs, err)
		}
	}
}

func compareReads(t *testing.T, what string, repo *tsdb.Repository[string], want truth) {
	t.Helper()
	ctx := context.Background()
	var paths []string
	for path := range want {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	under := func(prefix string, p tsdb.Prefix) {
		var newest, seen, entities, wantEntities []string
		for _, path := range paths {
			if strings.HasPrefix(path, prefix) {
				newest = append(newest, path+" "+want[path][0])
				wantEntities = append(wantEntities, path)
			}
		}
		for point, err := range repo.Under(p).Latest(ctx) {
			seen = append(seen, inside.Of(point.Entity).Path()+" "+resultText(point, err))
		}
		if !slices.Equal(seen, newest) {
			t.Errorf("%s: Under.Latest(%q)\n%q, want\n%q", what, prefix, seen, newest)
		}
		for e, err := range repo.Under(p).Entities(ctx, tsdb.AllTime()) {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			entities = append(entities, inside.Of(e).Path())
		}
		if !slices.Equal(entities, wantEntities) {
			t.Errorf("%s: Entities(%q)\n%q, want\n%q", what, prefix, entities, wantEntities)
		}
	}
	under("", tsdb.AllEntities())
	var asked []tsdb.Entity
	for _, site := range sites {
		p := tsdb.NewPrefix(site)
		under(inside.Of(p).Path()+"#", p)
		for n := range 26 {
			asked = append(asked, tsdb.NewEntity(site, fmt.Sprint("d", n)))
		}
	}
	answers, _ := latestMany(ctx, repo, asked)
	histories, _ := repo.LatestMany(ctx, asked, 7, tsdb.Concurrency(5))
	for i, e := range asked {
		all := want[inside.Of(e).Path()]
		if a := answers[i]; len(all) == 0 && !errors.Is(a.Err, tsdb.ErrNotFound) || len(all) > 0 && resultText(a.Point, a.Err) != all[0] {
			t.Errorf("%s: LatestMany of %v: %+v, want %.1q", what, e, a, all)
		}
		bad, _ := histories[i].Err.(tsdb.PointErrors)
		var got []string
		for _, p := range histories[i].Points {
			var err error
			if len(bad) > 0 && bad[0].Time.Equal(p.Time) {
				err, bad = bad[0], bad[1:]
			}
			got = append(got, resultText(p, err))
		}
		if !slices.Equal(got, all[:min(7, len(all))]) {
			t.Errorf("%s: LatestMany of %v: %q, want %.7q", what, e, got, all)
		}
		if i%5 != 0 {
			continue
		}
		for _, order := range []tsdb.Order{tsdb.NewestFirst, tsdb.OldestFirst} {
			var got []string
			for p, err := range repo.Range(ctx, e, tsdb.AllTime(), order) {
				got = append(got, resultText(p, err))
			}
			if order == tsdb.OldestFirst {
				slices.Reverse(got)
			}
			if !slices.Equal(got, all) {
				t.Errorf("%s: Range of %v, order %v: %q, want %q", what, e, order, got, all)
			}
		}
	}
}
