package tsdb_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/tsdb"
)

// describedSchemas returns a schema of every shape that a journal may deliver without the program's schema.
func describedSchemas(t testing.TB) []*dataset.Dataset {
	d7, d30 := gc.Class{Name: "d7", Policy: gc.MaxAge(7 * 24 * time.Hour)}, gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}
	var out []*dataset.Dataset
	for _, opts := range []tsdb.SchemaOptions{
		{},
		{Retention: d7, FormerClasses: []gc.Class{d30, {Name: "keep", Policy: gc.Never()}}, Salts: 16, Precision: tsdb.Microseconds},
		{FirstWins: true, Precision: tsdb.Milliseconds},
		{Merge: true, Immutable: "#"},
		{Identity: true, Precision: tsdb.Microseconds, FirstWins: true, Salts: 3},
	} {
		s, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.Fallback(codec.Records(), codec.Convert(codec.Int64(),
			func(int64) (codec.Record, error) { return codec.Record{}, nil }, nil)), opts)
		if err != nil {
			t.Fatal(err)
		}
		d, err := inside.Of(tsdb.Dataset(s)).Shape()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

// TestDescribed: the dataset's description in the catalogue and in a journal suffices to write its points.
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
			t.Errorf("%s: a bad entry is accepted", name)
		}
	}
	bad := good
	bad.Precision = "s"
	if _, err := dataset.FromCatalog(bad); err == nil {
		t.Error("precision: a bad entry is accepted")
	}
}
