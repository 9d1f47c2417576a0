package dynamic

import (
	"bytes"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Payload is a value as it is stored: the tag of its codec, and its bytes.
type Payload struct {
	Tag  string
	Data []byte
}

// Repository returns a repository of the points of the view, whose values are payloads. With it the queries of the
// packages window and under read a dataset without its Go type. It does no I/O.
//
// Its calls that write fail; View.Put writes. It deletes points as any repository of the
// dataset does, with their heads and the marks of rollups. It cannot read rollups of the dataset: Rollups does. A
// repository of the zero View fails each call with tsdb.ErrInvalid.
func (v *View) Repository() *tsdb.Repository[Payload] {
	if v.check() != nil {
		return nil
	}
	d, err := dataset.FromCatalog(v.dataset)
	if err != nil {
		return nil // Open has read the same entry
	}
	schema := inside.Of[*tsdb.Repository[Payload]](nil).Schema(d, inside.ReadOnly(d.Tags, func(tag string) func([]byte) (Payload, error) {
		return func(src []byte) (Payload, error) { return Payload{tag, bytes.Clone(src)}, nil }
	}), nil)
	if of, err := inside.Of(tsdb.Dataset(schema)).Shape(); err == nil {
		of.ReadOnly = false // a deletion needs no value
	}
	return schema.For(v.store, v.tenant)
}
