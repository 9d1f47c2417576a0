package tsdb

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
)

// describedSchemas are schemas of every shape that a journal may have to deliver without them.
func describedSchemas(t testing.TB) []*dataset.Dataset {
	d7, d30 := gc.Class{Name: "d7", Policy: gc.MaxAge(7 * 24 * time.Hour)}, gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}
	var out []*dataset.Dataset
	for _, opts := range []SchemaOptions{
		{},
		{Retention: d7, FormerClasses: []gc.Class{d30, {Name: "keep", Policy: gc.Never()}}, Salts: 16, Precision: Microseconds},
		{FirstWins: true, Precision: Milliseconds},
		{Merge: true, Immutable: "#"},
		{Identity: true, Precision: Microseconds, FirstWins: true, Salts: 3},
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
		got, err := dataset.FromCatalog(d.ToCatalog())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, d) {
			t.Errorf("schema %d becomes\n%+v, want\n%+v", i, got, d)
		}
	}
}

func TestDescribedRefuses(t *testing.T) {
	good := describedSchemas(t)[1].ToCatalog()
	for name, spoil := range map[string]func(*dataset.Dataset){
		"name":    func(d *dataset.Dataset) { d.Name = "a#b" },
		"fields":  func(d *dataset.Dataset) { d.Fields = nil },
		"salts":   func(d *dataset.Dataset) { d.Salts = 1 },
		"tags":    func(d *dataset.Dataset) { d.Tags = nil },
		"a tag":   func(d *dataset.Dataset) { d.Tags = []string{"no tag"} },
		"classes": func(d *dataset.Dataset) { d.Classes = nil },
		"versions": func(d *dataset.Dataset) {
			d.Classes = []dataset.Class{{Class: gc.Class{Name: "v", Policy: gc.MaxVersions(1)}}}
		},
	} {
		d, err := dataset.FromCatalog(good)
		if err != nil {
			t.Fatal(err)
		}
		spoil(d)
		if _, err := dataset.FromCatalog(d.ToCatalog()); err == nil {
			t.Errorf("%s: a bad entry is taken", name)
		}
	}
	bad := good
	bad.Precision = "s"
	if _, err := dataset.FromCatalog(bad); err == nil {
		t.Error("precision: a bad entry is taken")
	}
}

// FuzzJournalRecord: whatever is on disk becomes a point within its tenant, whose record is the same bytes, or an error. Records
// of the number 0 are as programs wrote them that knew no generations.
func FuzzJournalRecord(f *testing.F) {
	j := &records{datasets: map[uint64]*dataset.Dataset{}, plain: map[uint64]bool{0: true}}
	acme := tenant.MustParse("acme")
	for n, d := range describedSchemas(f) {
		j.datasets[uint64(n)] = d
		id := ""
		if d.Identity {
			id = "e-1"
		}
		f.Add(appendRecord(nil, uint64(n), 300, acme.String(), NewEntity("a#b", "%").path, 1234567, id, []byte("payload")))
	}
	f.Add([]byte("\x00\x04acme\x05a#b%c\x07payload"))
	f.Add([]byte("\x00\x04acme\x03a#b\x07payload"))
	f.Add([]byte{})
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, src []byte) {
		p, err := j.parse(src)
		if err != nil {
			return
		}
		if !bytes.HasPrefix([]byte(p.write.Key), []byte(p.Item.Tenant+"#readings#")) {
			t.Fatalf("the row %q is outside of tenant %s", p.write.Key, p.Item.Tenant)
		}
		path, units, id, ok := p.place()
		if !ok {
			t.Fatalf("the row %q is no point's", p.write.Key)
		}
		number := uint64(1)
		for i, d := range j.datasets {
			if d == p.write.D {
				number = i
			}
		}
		if number == 0 {
			if p.generation != tenancy.FirstGeneration {
				t.Fatalf("a record without a generation has %d", p.generation)
			}
			j.datasets[9], number = j.datasets[0], 9
		}
		again, err := j.parse(appendRecord(nil, number, p.generation, p.Item.Tenant, path, units, id, p.write.Payload))
		if err != nil || again.Item.Tenant != p.Item.Tenant || again.generation != p.generation || again.write.Key != p.write.Key ||
			again.write.Cell != p.write.Cell || !bytes.Equal(again.write.Payload, p.write.Payload) {
			t.Fatalf("%q becomes %+v, %v", src, again, err)
		}
	})
}
