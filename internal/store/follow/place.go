package follow

import (
	"encoding/binary"
	"slices"

	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// place is the position in a cursor: the time from which on the followed points are read again, the points from that
// time on that were delivered and, within a sweep, how far it has come.
type place struct {
	floor int64
	pairs []uint64
	row   string // the last row that the sweep has delivered; "" if it begins
	next  int64  // the floor of the sweep after it, if row is set
}

// append appends the encoding: the floor, the number of pairs, the pairs, and if there is a row, next and the row.
func (p place) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(p.floor))
	b = append(b, byte(len(p.pairs)))
	for _, pair := range p.pairs {
		b = binary.BigEndian.AppendUint64(b, pair)
	}
	if p.row != "" {
		b = binary.BigEndian.AppendUint64(b, uint64(p.next))
		b = append(b, p.row...)
	}
	return b
}

// read returns the place in a cursor. It refuses places outside of what is followed, so a forged cursor cannot leave
// it.
func (f *Follower) read(text string) (p place, err error) {
	raw, err := f.Rows.Cursors.Read(f.scope(), text)
	if err != nil {
		return p, err
	}
	if len(raw) < 9 || int(raw[8]) > maxRecent || len(raw) < 9+8*int(raw[8]) {
		return p, refused("not in the form of one")
	}
	p.floor = int64(binary.BigEndian.Uint64(raw))
	n := int(raw[8])
	raw = raw[9:]
	for range n {
		p.pairs, raw = append(p.pairs, binary.BigEndian.Uint64(raw)), raw[8:]
	}
	latest := f.Rows.D.Precision.Max()
	if p.floor < 0 || p.floor > latest {
		return p, refused("of a time that is not allowed")
	}
	if len(raw) == 0 {
		return p, nil
	}
	if len(raw) < 9 {
		return p, refused("not in the form of one")
	}
	p.next, p.row = int64(binary.BigEndian.Uint64(raw)), string(raw[8:])
	if p.next < p.floor || p.next > latest || !slices.ContainsFunc(f.ranges(), func(r rowkey.Range) bool { return p.row >= r.Start && p.row < r.Limit }) {
		return p, refused("outside of what is followed")
	}
	return p, nil
}

// ranges returns the rows that are followed.
func (f *Follower) ranges() []rowkey.Range {
	space := f.Rows.Space
	if f.Rows.D.Head.Only {
		space = f.Rows.Heads
	}
	if f.Prefix {
		return space.Under(f.Path)
	}
	return []rowkey.Range{space.Whole(f.Path)}
}

func refused(what string) error {
	return invalid.New(cursor.ErrCursor, "cursor", what, "one of a follower of the same tenant, dataset, and entity or prefix")
}
