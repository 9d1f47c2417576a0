package delivery

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
)

// describedDatasets returns datasets of every shape that a journal may deliver without their schemas.
func describedDatasets(t testing.TB) []*dataset.Dataset {
	keep, d7 := catalog.Class{Name: "keep", Policy: "never"}, catalog.Class{Name: "d7", Policy: "maxage=168h"}
	var out []*dataset.Dataset
	for _, e := range []catalog.Dataset{
		{Precision: "ns", Classes: []catalog.Class{keep}},
		{Precision: "us", Classes: []catalog.Class{d7, keep}, Salts: 16},
		{Precision: "ms", Classes: []catalog.Class{keep}, FirstWins: true},
		{Precision: "ns", Classes: []catalog.Class{keep}, Merge: true, Fixed: "#"},
		{Precision: "us+id", Classes: []catalog.Class{keep}, FirstWins: true, Salts: 3},
	} {
		e.Name, e.Key, e.Tags = "readings", []string{"site", "device"}, []string{codec.Records().Tag(), codec.Int64().Tag()}
		d, err := dataset.FromCatalog(e)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

// FuzzRecord checks that any bytes on disk decode to an error, or to a point within its tenant that encodes to the same
// bytes. A record with the number 0 is one from before records had generations.
func FuzzRecord(f *testing.F) {
	r := &Records{datasets: map[uint64]*dataset.Dataset{}, plain: map[uint64]bool{0: true}}
	for n, d := range describedDatasets(f) {
		r.datasets[uint64(n)] = d
		id := ""
		if d.Identity {
			id = "e-1"
		}
		f.Add(appendRecord(nil, uint64(n), 300, "acme", rowkey.Path("a#b", "%"), 1234567, id, []byte("payload")))
	}
	f.Add([]byte("\x00\x04acme\x05a#b%c\x07payload"))
	f.Add([]byte("\x00\x04acme\x03a#b\x07payload"))
	f.Add([]byte{})
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, src []byte) {
		p, err := r.parse(src)
		if err != nil {
			return
		}
		w := &p.Write
		if !strings.HasPrefix(w.Key, p.Item.Tenant+"#readings#") {
			t.Fatalf("got row %q, outside tenant %s", w.Key, p.Item.Tenant)
		}
		space, err := w.D.Space(tenant.MustParse(p.Item.Tenant))
		if err != nil {
			t.Fatal(err)
		}
		if path, units, id, ok := space.SplitEvent(w.Key); !ok || path != w.Entity.Path() || units != w.Units || id != w.ID {
			t.Fatalf("the row %q holds the point %q at %d with ID %q (%v), want %q at %d with ID %q", w.Key, path, units, id, ok, w.Entity.Path(), w.Units, w.ID)
		}
		number := uint64(1)
		for i, d := range r.datasets {
			if d == w.D {
				number = i
			}
		}
		if number == 0 {
			if p.Taken != tenancy.FirstGeneration {
				t.Fatalf("a record without a generation: got generation %d", p.Taken)
			}
			r.datasets[9], number = r.datasets[0], 9
		}
		again, err := r.parse(appendRecord(nil, number, p.Taken, p.Item.Tenant, w.Entity.Path(), w.Units, w.ID, w.Payload))
		if err != nil || again.Item.Tenant != p.Item.Tenant || again.Taken != p.Taken || again.Write.Key != w.Key ||
			again.Write.Cell != w.Cell || !bytes.Equal(again.Write.Payload, w.Payload) {
			t.Fatalf("%q decodes to %+v, %v", src, again, err)
		}
	})
}
