package tsdb

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
)

// describedSchemas are schemas of every shape that a journal may have to deliver without them.
func describedSchemas(t testing.TB) []*dataset {
	d7, d30 := gc.Class{Name: "d7", Policy: gc.MaxAge(7 * 24 * time.Hour)}, gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}
	var out []*dataset
	for _, opts := range []SchemaOptions{
		{},
		{Retention: d7, Older: []gc.Class{d30, {Name: "keep", Policy: gc.Never()}}, Salts: 16, Precision: Microseconds},
		{FirstWins: true, Precision: Milliseconds},
		{Merge: true, Fixed: "#"},
	} {
		s, err := Define("readings", Key("site", "device"), codec.Fallback(codec.Records(), codec.Convert(codec.Int64(),
			func(int64) (codec.Record, error) { return codec.Record{}, nil }, nil)), opts)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s.shape())
	}
	return out
}

// TestDescribed: what the catalogue and the journal say of a dataset is enough to write its points.
func TestDescribed(t *testing.T) {
	for i, d := range describedSchemas(t) {
		got, err := described(d.entry())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, d) {
			t.Errorf("schema %d becomes\n%+v, want\n%+v", i, got, d)
		}
	}
}

func TestDescribedRefuses(t *testing.T) {
	good := describedSchemas(t)[1].entry()
	for name, spoil := range map[string]func(*dataset){
		"name":     func(d *dataset) { d.name = "a#b" },
		"fields":   func(d *dataset) { d.fields = nil },
		"salts":    func(d *dataset) { d.salts = 1 },
		"tags":     func(d *dataset) { d.tags = nil },
		"a tag":    func(d *dataset) { d.tags = []string{"no tag"} },
		"classes":  func(d *dataset) { d.classes = nil },
		"versions": func(d *dataset) { d.classes = []class{{Class: gc.Class{Name: "v", Policy: gc.MaxVersions(1)}}} },
	} {
		d, err := described(good)
		if err != nil {
			t.Fatal(err)
		}
		spoil(d)
		if _, err := described(d.entry()); err == nil {
			t.Errorf("%s: a bad entry is taken", name)
		}
	}
	bad := good
	bad.Precision = "s"
	if _, err := described(bad); err == nil {
		t.Error("precision: a bad entry is taken")
	}
}

// FuzzJournalRecord: whatever is on disk becomes a point within its tenant, whose record is the same bytes, or an error.
func FuzzJournalRecord(f *testing.F) {
	datasets := describedSchemas(f)
	known := func(n uint64) *dataset {
		if n < uint64(len(datasets)) {
			return datasets[n]
		}
		return nil
	}
	acme := tenant.MustParse("acme")
	for n := range datasets {
		f.Add(appendRecord(nil, uint64(n), acme.String(), NewEntity("a#b", "%").path, 1234567, []byte("payload")))
	}
	f.Add([]byte{})
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, src []byte) {
		id, w, err := parseRecord(src, known)
		if err != nil {
			return
		}
		if !bytes.HasPrefix([]byte(w.key), []byte(id.String()+"#readings#")) {
			t.Fatalf("the row %q is outside of tenant %s", w.key, id)
		}
		p := newPending(id, w, nil)
		path, units, ok := p.place()
		if !ok {
			t.Fatalf("the row %q is no point's", w.key)
		}
		number := uint64(0)
		for i, d := range datasets {
			if d == w.d {
				number = uint64(i)
			}
		}
		again, w2, err := parseRecord(appendRecord(nil, number, id.String(), path, units, w.payload), known)
		if err != nil || again != id || w2.key != w.key || w2.cell != w.cell || !bytes.Equal(w2.payload, w.payload) {
			t.Fatalf("%q becomes %+v, %v", src, w2, err)
		}
	})
}
