package tsdb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// tooFar is a time that writes accepted once: milliseconds that were taken for seconds.
var tooFar = time.Date(58803, 2, 28, 1, 2, 3, 0, time.UTC)

// TestWritesEndWithTheYear9999: no precision takes a later time, and the error says what it takes.
func TestWritesEndWithTheYear9999(t *testing.T) {
	for precision, last := range map[tsdb.Precision]string{
		tsdb.Nanoseconds: "2262-04-11T23:47:16.854775807Z", tsdb.Microseconds: "9999-12-31T23:59:59.999999Z", tsdb.Milliseconds: "9999-12-31T23:59:59.999Z",
	} {
		s := readings(t, tsdb.SchemaOptions{Precision: precision})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		at, err := time.Parse(time.RFC3339Nano, last)
		if err != nil {
			t.Fatal(err)
		}
		if err := repo.Put(t.Context(), roof, at, reading{1}); err != nil {
			t.Errorf("%v refuse their last time, %s: %v", precision, last, err)
		}
		w, err := store.NewWriter(tsdb.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close(context.Background())
		for _, late := range []time.Time{tooFar, at.Add(time.Millisecond)} {
			_, many := repo.PutMany(t.Context(), []tsdb.Point[reading]{{Entity: roof, Time: late}})
			for call, err := range map[string]error{
				"Put": repo.Put(t.Context(), roof, late, reading{1}), "PutMany": many, "Enqueue": repo.Via(w).Enqueue(t.Context(), roof, late, reading{1}),
			} {
				bad, ok := errors.AsType[*tsdb.InvalidError](err)
				if !ok || bad.Field != "time" || bad.Limit != "1970-01-01T00:00:00Z to "+last {
					t.Errorf("%s in %v at %v: %v; want an error with the limit %s", call, precision, late, err, last)
				}
				if late.Equal(tooFar) && !strings.Contains(fmt.Sprint(err), "+058803-02-28T01:02:03Z") {
					t.Errorf("%s in %v: %v; want the time in the error", call, precision, err)
				}
			}
		}
	}
}

// TestStoredPointsAfterTheYear9999: points that are stored already are read, have JSON, and can be deleted.
func TestStoredPointsAfterTheYear9999(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"microseconds": {Precision: tsdb.Microseconds}, "milliseconds": {Precision: tsdb.Milliseconds},
		"heads": {Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			s := readings(t, opts)
			store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
			repo := s.For(store, acme)
			year2400 := time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)
			for _, at := range []time.Time{start, year2400} {
				if err := repo.Put(t.Context(), roof, at, reading{float64(at.Year())}); err != nil {
					t.Fatal(err)
				}
			}
			m := bigtable.NewMutation()
			m.Set("keep", "p:json", bigtable.Timestamp(tooFar.UnixMilli()*1000), []byte(`{"temp_c":58803}`))
			units := tooFar.UnixMicro()
			if opts.Precision == tsdb.Milliseconds {
				units = tooFar.UnixMilli()
			}
			apply(t, table, fmt.Sprintf("acme#readings#berlin#roof-7#%019d", (1<<63-1)-units), m)
			if opts.Head.Points > 0 {
				head := bigtable.NewMutation()
				head.Set("keep.h3", "p:json", bigtable.Timestamp(tooFar.UnixMilli()*1000), []byte(`{"temp_c":58803}`))
				apply(t, table, headKey(roof), head)
			}
			want := func(call string, got []tsdb.Point[reading], err error, years ...int) {
				t.Helper()
				if err != nil || len(got) != len(years) {
					t.Errorf("%s returns %v, %v; want points of %v", call, got, err, years)
					return
				}
				for i, p := range got {
					if p.Time.Year() != years[i] || int(p.Value.TempC) != years[i] {
						t.Errorf("%s returns %v; want points of %v", call, got, years)
					}
				}
				out, err := json.Marshal(got)
				var back []tsdb.Point[reading]
				if err != nil || json.Unmarshal(out, &back) != nil || fmt.Sprint(back) != fmt.Sprint(got) {
					t.Errorf("the JSON of what %s returns is %s, %v, and is read as %v", call, out, err, back)
				}
			}
			one := func(call string, p tsdb.Point[reading], err error, year int) {
				t.Helper()
				want(call, []tsdb.Point[reading]{p}, err, year)
			}
			p, err := repo.Latest(t.Context(), roof)
			one("Latest", p, err, 58803)
			p, err = repo.Get(t.Context(), roof, tooFar)
			one("Get", p, err, 58803)
			for year, at := range map[int]time.Time{58803: tooFar, 2400: tooFar.Add(-time.Second), 2026: year2400.Add(-time.Second)} {
				p, err = repo.AsOf(t.Context(), roof, at)
				one(fmt.Sprint("AsOf ", at), p, err, year)
			}
			all, err := repo.LatestN(t.Context(), roof, 5)
			want("LatestN", all, err, 58803, 2400, 2026)
			answers, err := latestMany(t.Context(), repo, []tsdb.Entity{roof})
			one("LatestMany", answers[0].Point, err, 58803)
			page, err := repo.Page(t.Context(), roof, tsdb.AllTime(), 2, "")
			want("Page", page.Points, err, 58803, 2400)
			page, err = repo.Page(t.Context(), roof, tsdb.AllTime(), 2, page.Next)
			want("Page", page.Points, err, 2026)
			under, err := repo.Under(tsdb.NewPrefix("berlin")).PageLatest(t.Context(), 5, "")
			want("Under.PageLatest", under.Points, err, 58803)
			for p, err := range repo.Under(tsdb.NewPrefix("berlin")).Latest(t.Context()) {
				one("Under.Latest", p, err, 58803)
			}
			var found []tsdb.Point[reading]
			for p, err := range repo.Range(t.Context(), roof, tsdb.Since(year2400), tsdb.OldestFirst) {
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, p)
			}
			want("Range", found, nil, 2400, 58803)
			if err := repo.Delete(t.Context(), roof, tooFar); err != nil {
				t.Fatal(err)
			}
			p, err = repo.Latest(t.Context(), roof)
			one("Latest after Delete", p, err, 2400)
			if n, err := repo.DeleteRange(t.Context(), roof, tsdb.Since(year2400)); n != 1 || err != nil {
				t.Errorf("DeleteRange deletes %d points, %v; want 1", n, err)
			}
			answers, err = latestMany(t.Context(), repo, []tsdb.Entity{roof})
			one("LatestMany after DeleteRange", answers[0].Point, err, 2026)
		})
	}
}
