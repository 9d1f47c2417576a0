package inbound

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func tagFields(pairs ...string) (tags []codec.Field) {
	for i := 0; i < len(pairs); i += 2 {
		tags = append(tags, codec.Field{Name: TagPrefix + pairs[i], Value: codec.Str(pairs[i+1])})
	}
	return tags
}

// TestStreamHashIsStored: the hash is part of stored keys, so it stays as docs/format.md says.
func TestStreamHashIsStored(t *testing.T) {
	for _, tt := range []struct {
		metric, kind string
		tags         []codec.Field
		want         string
	}{
		{"system.cpu.time", "sum:total", tagFields("state", "user", "cpu", "0"), "iotg5qgpx5hrrsz5ogpq6ymq"},
		{"system.cpu.time", "sum:total", tagFields("cpu", "0", "state", "user"), "iotg5qgpx5hrrsz5ogpq6ymq"},
		{"m", "gauge", nil, "jalo5eoxtrirtgsilr2sx5ez"},
		{`a\b,c=d`, "summary", tagFields("x,y", `=\`, "empty", ""), "lqbsjp5dkpkeacmlonkm3anl"},
	} {
		if got := streamHash(tt.metric, tt.kind, tt.tags); got != tt.want {
			t.Errorf("%s, %s, %v has the hash %s, want %s: stored streams would become others", tt.metric, tt.kind, tt.tags, got, tt.want)
		}
	}
}

// TestStreamHashOfOther: no two of many streams with names and values that look like one another have one hash.
func TestStreamHashOfOther(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range r.IntN(4) {
			b.WriteByte(`ab,=\`[r.IntN(5)])
		}
		return b.String()
	}
	seen := map[string]string{}
	for range 20_000 {
		tags := map[string]string{}
		for range r.IntN(3) {
			tags[text()] = text()
		}
		var fields []codec.Field
		for name, value := range tags {
			fields = append(fields, tagFields(name, value)...)
		}
		metric, kind := text(), []string{"gauge", "sum"}[r.IntN(2)]
		is := fmt.Sprintf("%q %s %q", metric, kind, tags)
		hash := streamHash(metric, kind, fields)
		if other, ok := seen[hash]; ok && other != is {
			t.Fatalf("%s and %s have one hash: the streams would overwrite each other", is, other)
		}
		seen[hash] = is
	}
}

// TestHashedStreamsHaveHeads: streams with points in one millisecond have heads and newest points of their own, also in
// the cache, and other tenants see nothing of them.
func TestHashedStreamsHaveHeads(t *testing.T) {
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 100}}})
	ks := Keys{}
	if err := ks.Add("hashed", []string{"host", OtherHash}); err != nil {
		t.Fatal(err)
	}
	ds, err := NewDatasets(t.Context(), store, ks, Options{Schema: tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(t.Context())
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	send := func(id tenant.ID, first, n int) (entities []tsdb.Entity) {
		var b Batch[tenant.ID]
		d := ds.finds(t, id, "hashed")
		for i := first; i < first+n; i++ {
			p := d.NewPoint()
			p.Stream("m", "gauge")
			if err := errors.Join(p.Tag("host", "a"), p.Tag("cpu", fmt.Sprint(i)), p.Field("m", codec.Int(int64(i)))); err != nil {
				t.Fatal(err)
			}
			made, err := p.Point(At(at))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.Add(made, id, 10); err != nil {
				t.Fatal(err)
			}
			entities = append(entities, made.Entity)
		}
		if err := b.Store(t.Context(), Sink{store, w}, id, func([]tenant.ID, tsdb.Outcome) {}); err != nil {
			t.Fatal(err)
		}
		return entities
	}
	conn.Reset()
	entities := send(acme, 0, 3)
	send(acme, 0, 3)
	send(acme2, 1, 1)
	if calls := conn.Counts().Calls; len(calls) != 1 || calls[tsdbtest.MutateRows] != 3 {
		t.Errorf("the requests were %v, want a MutateRows for each batch", calls)
	}
	repo := ds.finds(t, acme, "hashed").Schema().For(store, acme)
	for _, opts := range [][]tsdb.ReadOption{nil, {tsdb.MaxStale(time.Hour)}, {tsdb.MaxStale(time.Hour)}} {
		newest, err := repo.LatestMany(t.Context(), entities, 2, opts...)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range newest {
			if len(h.Points) != 1 || h.Points[0].Value.String() != fmt.Sprintf(`{m=%di tag:cpu="%d"}`, i, i) {
				t.Errorf("the newest points of stream %d are %v, want its own one", i, h.Points)
			}
		}
	}
	theirs := 0
	for _, err := range ds.finds(t, acme2, "hashed").Schema().For(store, acme2).Under(tsdb.AllEntities()).Latest(t.Context()) {
		if theirs++; err != nil {
			t.Fatal(err)
		}
	}
	if theirs != 1 {
		t.Errorf("the other tenant has %d streams, want 1", theirs)
	}
}
