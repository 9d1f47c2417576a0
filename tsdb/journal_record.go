package tsdb

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// A record of the journal is a point: the number of its dataset's description in the journal, the tenant and the entity's
// path, each behind its length, the time in units, and the payload up to the end. Numbers are varints of protobuf. What the
// row looks like follows from the description, so that a journal can be delivered by a program that does not know the schema.

// appendRecord appends the record of a point to dst.
func appendRecord(dst []byte, number uint64, tenant, path string, units int64, payload []byte) []byte {
	dst = binary.AppendUvarint(dst, number)
	dst = binary.AppendUvarint(dst, uint64(len(tenant)))
	dst = append(dst, tenant...)
	dst = binary.AppendUvarint(dst, uint64(len(path)))
	dst = append(dst, path...)
	dst = binary.AppendUvarint(dst, uint64(units))
	return append(dst, payload...)
}

// parseRecord reads a record, whose payload stays a part of src. Known returns the dataset of a number, or nil.
func parseRecord(src []byte, known func(uint64) *dataset) (tenant.ID, write, error) {
	r := recordReader{src: src}
	number, name, path, units := r.number(), r.text(), r.text(), r.number()
	if r.bad {
		return tenant.ID{}, write{}, invalid.New(ErrInvalid, "journal record", fmt.Sprintf("%d bytes", len(src)), "a point, which this is not")
	}
	d := known(number)
	if d == nil {
		return tenant.ID{}, write{}, invalid.New(ErrInvalid, "journal record", fmt.Sprintf("dataset number %d", number), "a number that the journal describes")
	}
	id, err := tenant.Parse(name)
	if err != nil {
		return tenant.ID{}, write{}, err
	}
	space, err := rowkey.NewSpace(id, d.name, d.fields, d.salts)
	if err != nil {
		return tenant.ID{}, write{}, err
	}
	space = d.beside(space)
	if err := space.CheckPath(path); err != nil {
		return tenant.ID{}, write{}, err
	}
	if units > uint64(d.precision.Max()) {
		return tenant.ID{}, write{}, invalid.New(ErrInvalid, "time", fmt.Sprint(units), fmt.Sprintf("at most %d %s", d.precision.Max(), d.precision))
	}
	w := newWrite(d, space, space.Heads(), path, int64(units), r.src)
	if len(r.src) > maxPayload {
		return tenant.ID{}, write{}, invalid.New(ErrInvalid, "payload", fmt.Sprintf("%d bytes", len(r.src)), fmt.Sprintf("at most %d bytes", maxPayload))
	}
	if _, _, ok := space.Split(w.key); !ok {
		return tenant.ID{}, write{}, invalid.New(ErrInvalid, "entity", invalid.Quote(path), "an escaped path")
	}
	return id, w, nil
}

type recordReader struct {
	src []byte
	bad bool
}

func (r *recordReader) number() uint64 {
	v, n := binary.Uvarint(r.src)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.src = r.src[n:]
	return v
}

func (r *recordReader) text() string {
	n := r.number()
	if n > uint64(len(r.src)) {
		r.bad = true
		return ""
	}
	s := string(r.src[:n])
	r.src = r.src[n:]
	return s
}
