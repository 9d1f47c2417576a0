package delivery

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
)

// A record of the journal is a point: the number of its dataset's description in the journal, its generation, the tenant and the
// entity's path, each behind its length, the time in units, in a dataset with Identity the ID
// behind its length, and the payload up to the end. Numbers are varints of protobuf. What
// the row looks like follows from the description, so that a journal can be delivered by a program that does not know the
// schema. Records of numbers with an older kind of description have no generation, and count as written before all erasures.

// appendRecord appends the record of a point to dst. The ID is empty in a dataset without Identity.
func appendRecord(dst []byte, number uint64, g tenancy.Generation, tenant, path string, units int64, id string, payload []byte) []byte {
	dst = binary.AppendUvarint(dst, number)
	dst = binary.AppendUvarint(dst, uint64(g))
	dst = binary.AppendUvarint(dst, uint64(len(tenant)))
	dst = append(dst, tenant...)
	dst = binary.AppendUvarint(dst, uint64(len(path)))
	dst = append(dst, path...)
	dst = binary.AppendUvarint(dst, uint64(units))
	if id != "" {
		dst = binary.AppendUvarint(dst, uint64(len(id)))
		dst = append(dst, id...)
	}
	return append(dst, payload...)
}

// parseRecord reads the record of a point of a dataset, behind the generation. The payload stays a part of it.
func parseRecord(r recordReader, d *dataset.Dataset) (*Pending, error) {
	name, path, units := r.text(), r.text(), r.number()
	if r.bad {
		return nil, invalid.New(dataset.ErrInvalid, "journal record", fmt.Sprintf("%d bytes", len(r.src)), "a point, which this is not")
	}
	id, err := tenant.Parse(name)
	if err != nil {
		return nil, err
	}
	space, err := d.Space(id)
	if err != nil {
		return nil, err
	}
	space = d.BesideRollups(space)
	identity := ""
	if d.Identity {
		identity = r.text()
	}
	if err := space.CheckID(identity); err != nil {
		return nil, err
	}
	if err := space.CheckPath(path); err != nil {
		return nil, err
	}
	if units > uint64(d.Precision.Max()) {
		return nil, invalid.New(dataset.ErrInvalid, "time", fmt.Sprint(units), fmt.Sprintf("at most %d %s", d.Precision.Max(), d.Precision))
	}
	w := points.NewWrite(d, space, space.Heads(), path, int64(units), identity, r.src)
	if len(r.src) > dataset.MaxPayload {
		return nil, invalid.New(dataset.ErrInvalid, "payload", fmt.Sprintf("%d bytes", len(r.src)), fmt.Sprintf("at most %d bytes", dataset.MaxPayload))
	}
	if _, _, ok := space.Split(w.Key); !ok {
		return nil, invalid.New(dataset.ErrInvalid, "entity", invalid.Quote(path), "an escaped path")
	}
	return NewPoint(id, w, nil), nil
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
