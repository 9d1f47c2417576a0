package tsdb_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// secrets returns keys for cursors. Each key repeats one byte.
func secrets(ns ...byte) (keys [][]byte) {
	for _, n := range ns {
		key := bytes.Repeat([]byte{n}, 32)
		key[0] = ^n
		keys = append(keys, key)
	}
	return keys
}

// last returns the last time that a precision can hold.
func last(precision tsdb.Precision) int64 {
	if precision == tsdb.Milliseconds {
		return math.MaxInt64 / 1000
	}
	return math.MaxInt64
}

// known returns the scope of a query of acme's readings: what a client can find out, and could use to forge an unsealed
// cursor.
func known(q query, precision tsdb.Precision) cursor.Scope {
	return cursor.Scope{
		Kind: cursor.Points, Tenant: "acme", Dataset: "readings", Precision: byte(precision), Path: inside.Of(q.Entity).Path(),
		Newest: last(precision), Reverse: q.Order == tsdb.OldestFirst,
	}
}

func TestCursorsAreBoundToTheirQuery(t *testing.T) {
	for mode, keys := range map[string][][]byte{"sealed": secrets(1), "unsealed": nil} {
		s := readings(t, tsdb.SchemaOptions{})
		other := tsdb.MustDefine("readings2", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{})
		millis := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Precision: tsdb.Milliseconds})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{CursorKeys: keys}}, s, other)
		rekeyed, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{CursorKeys: secrets(2)}}, s)
		keyless, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		seconds(t, repo, 20)
		end := start.Add(time.Minute)
		q := query{Entity: roof, In: tsdb.Between(start, end)}
		page := must[tsdb.Page[reading]](t)(repo.Page(t.Context(), q.Entity, q.In, 5, "", q.Order))
		conn.Reset()
		refused := func(what string, repo *tsdb.Repository[reading], q query, text string) {
			t.Helper()
			page, err := repo.Page(t.Context(), q.Entity, q.In, 5, text, q.Order)
			var invalid *tsdb.InvalidError
			if !errors.Is(err, tsdb.ErrCursor) || !errors.As(err, &invalid) || invalid.Field != "cursor" || page.Points != nil {
				t.Errorf("%s, %s: page %v, error %v; want ErrCursor", mode, what, page, err)
				return
			}
			for _, secret := range []string{text, "acme", "readings", "roof", "2026"} {
				if len(secret) > 3 && strings.Contains(err.Error(), secret) {
					t.Errorf("%s, %s: the error %v contains %q", mode, what, err, secret)
				}
			}
		}
		refused("another tenant", s.For(store, tenant.MustParse("acme2")), q, page.Next)
		refused("another dataset", other.For(store, acme), q, page.Next)
		refused("another precision", millis.For(store, acme), q, page.Next)
		for what, q := range map[string]query{
			"another entity":       {Entity: tsdb.NewEntity("berlin", "roof-8"), In: q.In},
			"parts cut otherwise":  {Entity: tsdb.NewEntity("berlin#roof", "7"), In: q.In},
			"another start":        {Entity: roof, In: tsdb.Between(start.Add(1), end)},
			"another end":          {Entity: roof, In: tsdb.Between(start, end.Add(1))},
			"no end":               {Entity: roof, In: tsdb.Since(start)},
			"all of time":          {Entity: roof},
			"nothing":              {Entity: roof, In: tsdb.Between(start, start)},
			"another order":        {Entity: roof, In: q.In, Order: tsdb.OldestFirst},
			"the end included":     {Entity: roof, In: q.In.ClosedEnd()},
			"the start left out":   {Entity: roof, In: q.In.OpenStart()},
			"after the first page": {Entity: roof, In: tsdb.Until(start.Add(15 * time.Second))},
		} {
			refused(what, repo, q, page.Next)
		}
		refused("other keys", s.For(rekeyed, acme), q, page.Next)
		if mode == "sealed" {
			refused("a store without keys", s.For(keyless, acme), q, page.Next)
			forged := known(q, tsdb.Nanoseconds)
			forged.Oldest, forged.Newest = start.UnixNano(), end.UnixNano()-1
			refused("without a seal", repo, q, cursor.Box{}.WriteTime(forged, page.Points[4].Time.UnixNano()))
			if got, err := s.For(keyless, acme).Page(t.Context(), q.Entity, q.In, 5, cursor.Box{}.WriteTime(forged, page.Points[4].Time.UnixNano()), q.Order); err != nil {
				t.Errorf("the forged cursor does not have the store's format: %v, %v", got, err)
			}
		}
		changed := func(text string) { refused("changed", repo, q, text) }
		raw := must[[]byte](t)(base64.RawURLEncoding.DecodeString(page.Next))
		for i := range raw {
			for bit := range 8 {
				flipped := bytes.Clone(raw)
				flipped[i] ^= 1 << bit
				changed(base64.RawURLEncoding.EncodeToString(flipped))
			}
		}
		for i := 1; i < len(page.Next); i++ {
			changed(page.Next[:i])
			changed(page.Next[i:])
		}
		if calls := conn.Counts().Calls; len(calls) != 0 {
			t.Errorf("%s: refused calls sent requests: %v", mode, calls)
		}
		berlin := time.FixedZone("Berlin", 7200)
		for what, q := range map[string]query{
			"the same query":          q,
			"in another zone":         {Entity: tsdb.NewEntity("berlin", "roof-7"), In: tsdb.Between(start.In(berlin), end.In(berlin))},
			"the same times, closed":  {Entity: roof, In: tsdb.Between(start, end.Add(-1)).ClosedEnd()},
			"the same times, open":    {Entity: roof, In: tsdb.Between(start.Add(-1), end).OpenStart()},
			"the order with its name": {Entity: roof, In: q.In, Order: tsdb.NewestFirst},
		} {
			for _, size := range []int{1, 5, 100} {
				if page, err := repo.Page(t.Context(), q.Entity, q.In, size, page.Next, q.Order); err != nil || page.Points[0].Value.TempC != 14 {
					t.Errorf("%s, %s: page %v, error %v; want a page", mode, what, page, err)
				}
			}
		}
	}
}

// TestRotatedKeys: a cursor stays valid while its key is among the store's keys, and is refused afterwards.
func TestRotatedKeys(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	pages := func(keys [][]byte, next string) (string, error) {
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{CursorKeys: keys}}, s)
		repo := s.For(store, acme)
		seconds(t, repo, 20)
		page, err := repo.Page(t.Context(), roof, tsdb.AllTime(), 2, next)
		return page.Next, err
	}
	old := must[string](t)(pages(secrets(1), ""))
	next := old
	for i, keys := range [][][]byte{secrets(1, 2), secrets(2, 1), secrets(2)} {
		var err error
		if next, err = pages(keys, next); err != nil {
			t.Fatalf("step %d: %v", i+1, err)
		}
	}
	if _, err := pages(secrets(2), old); !errors.Is(err, tsdb.ErrCursor) {
		t.Errorf("a cursor whose key was removed: %v, want ErrCursor", err)
	}
}

// FuzzForgedCursors: whatever an unsealed cursor contains, its page holds only points of its own query, in order.
func FuzzForgedCursors(f *testing.F) {
	s := readings(f, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(f, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	seconds(f, repo, 50)
	for _, e := range []tsdb.Entity{tsdb.NewEntity("berlin", "roof-8"), tsdb.NewEntity("berlin", "roof-6"), tsdb.NewEntity("berlin", "roof-7a")} {
		if err := repo.Put(f.Context(), e, start.Add(time.Second), reading{-1}); err != nil {
			f.Fatal(err)
		}
	}
	if err := s.For(store, tenant.MustParse("acme2")).Put(f.Context(), roof, start.Add(time.Second), reading{-1}); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("12345678"), int64(10), int64(20), false)
	f.Add([]byte{}, int64(-5), int64(60), true)
	f.Add([]byte{0x18, 0x86, 0x6f, 0x1e, 0xea, 0xd7, 0x00, 0x00}, int64(0), int64(50), true)
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, int64(0), int64(math.MaxInt32), true)
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0}, int64(math.MinInt32), int64(50), false)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, int64(30), int64(20), false)
	f.Fuzz(func(t *testing.T, place []byte, from, to int64, oldestFirst bool) {
		from, to = from%math.MaxInt32, to%math.MaxInt32
		from, to = min(from, to), max(from, to)
		q := query{Entity: roof, In: tsdb.Between(start.Add(time.Duration(from)*time.Second), start.Add(time.Duration(to)*time.Second))}
		if oldestFirst {
			q.Order = tsdb.OldestFirst
		}
		scope := known(q, tsdb.Nanoseconds)
		scope.Oldest, scope.Newest = max(0, start.UnixNano()+from*1e9), start.UnixNano()+to*1e9-1
		if scope.Oldest > scope.Newest {
			scope.Oldest, scope.Newest = 1, 0
		}
		for _, text := range []string{cursor.Box{}.Write(scope, place), string(place)} {
			if text == "" {
				continue
			}
			page, err := repo.Page(t.Context(), q.Entity, q.In, 100, text, q.Order)
			if err != nil && !errors.Is(err, tsdb.ErrCursor) {
				t.Fatalf("error %v; want a page or ErrCursor", err)
			}
			for i, p := range page.Points {
				if p.Entity != roof || p.Value.TempC < 0 || !q.In.Contains(p.Time) || i > 0 && (p.Time.After(page.Points[i-1].Time) != oldestFirst) {
					t.Fatalf("a forged cursor shows %v, which is not in %+v, or not in order", p, q)
				}
			}
		}
	})
}

// TestCursorKeys: keys are checked when a store is opened, and never shown.
func TestCursorKeys(t *testing.T) {
	const secret = "a secret that must not be shown!"
	for what, keys := range map[string][][]byte{
		"cursor key 2 is 31 bytes": {[]byte(secret), []byte(secret[1:])},
		"cursor key 1 is 0 bytes":  {{}},
		"cursor keys is 17 keys":   make([][]byte, 17),
	} {
		_, errOpen := tsdb.Open(t.Context(), tsdb.Config{StoreOptions: tsdb.StoreOptions{CursorKeys: keys}, Project: "p", Instance: "i", Table: "t"})
		_, errEmbedded := embedded.New(t.Context(), embedded.Options{StoreOptions: tsdb.StoreOptions{CursorKeys: keys}})
		for call, err := range map[string]error{"Open": errOpen, "embedded.New": errEmbedded} {
			if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), secret[3:10]) {
				t.Errorf("%s: %v, want %q", call, err, what)
			}
		}
	}
}

func TestCursorKeysFromEnv(t *testing.T) {
	t.Setenv("TIDEMARK_PROJECT", "p")
	t.Setenv("TIDEMARK_INSTANCE", "i")
	t.Setenv("TIDEMARK_TABLE", "t")
	one, two := base64.StdEncoding.EncodeToString(secrets(1)[0]), base64.StdEncoding.EncodeToString(secrets(255)[0])
	for text, want := range map[string]int{"": 0, one: 1, one + "," + two: 2, " " + two + " ,\n" + one + "\n": 2} {
		t.Setenv("TIDEMARK_CURSOR_KEYS", text)
		c, err := tsdb.ConfigFromEnv()
		if err != nil || len(c.CursorKeys) != want || want == 2 && bytes.Equal(c.CursorKeys[0], c.CursorKeys[1]) {
			t.Errorf("%q: got %d keys, error %v", text, len(c.CursorKeys), err)
		}
	}
	for text, want := range map[string]string{
		one[:40]:                              "cursor key 1 is 30 bytes",
		one + ",":                             "cursor key 2 is 0 bytes",
		one + "," + one[:43]:                  "cursor key 2 is no standard base64",
		strings.ReplaceAll(two, "/", "_"):     "cursor key 1 is no standard base64",
		one + ";" + two:                       "cursor key 1 is no standard base64",
		strings.Repeat("A", 43) + "=":         "cursor key 1 is one byte over and over",
		strings.Repeat(one+",", 16) + one:     "cursor keys is 17 keys",
		"correct horse battery staple, again": "cursor key 1 is no standard base64",
	} {
		t.Setenv("TIDEMARK_CURSOR_KEYS", text)
		c, err := tsdb.ConfigFromEnv()
		if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "TIDEMARK_CURSOR_KEYS") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if c.CursorKeys != nil || err != nil && strings.Contains(err.Error(), text[:6]) {
			t.Errorf("%q: %v shows the key", text, err)
		}
	}
}
