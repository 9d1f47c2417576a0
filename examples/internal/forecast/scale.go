package forecast

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tsdb"
)

// sizesOff is the largest relative error of the sum of the service's sizes.
const sizesOff = 0.05

// weigh finds the scale of the service's sizes, and the unread bytes of each part.
func (s *sample) weigh() error {
	sized := 0.0
	for _, p := range s.parts {
		sized += p.size
		s.cost.Read += int(one(p.read()))
		s.cost.Finished += int(one(p.finished()))
	}
	switch {
	case s.cost.Finished == len(s.parts):
		s.basis = Counted
		s.divide()
		return nil
	case sized == 0:
		return invalid.New(tsdb.ErrInvalid, "Rows, Bytes or Requests", fmt.Sprintf("used up after %d rows", s.cost.Rows),
			"enough to read all rows, as the service does not tell how large the table is")
	case s.cost.Rows == 0 && s.cost.Finished == 0:
		return invalid.New(tsdb.ErrInvalid, "Rows, Bytes or Requests", fmt.Sprintf("used up after %d requests", s.cost.Requests), "enough to read some rows")
	}
	s.basis = Sampled
	if s.cost.Finished == s.cost.Read { // only unread rows depend on the scale
		s.measured = slices.DeleteFunc(slices.Clone(s.parts), func(p *part) bool { return !p.finished() || p.size == 0 })
	}
	if s.scale, s.spread = scaleOf(s.measured); len(s.measured) == 0 {
		s.basis = Assumed
	}
	if s.cost.Finished == s.cost.Read {
		s.spread = 0
	}
	s.spread = math.Hypot(s.spread, sizesOff)
	for _, p := range s.parts {
		p.share(s.scale)
	}
	s.divide()
	return nil
}

// divide divides the parts into strata.
func (s *sample) divide() {
	s.strata = newStrata(s.parts)
	for _, parts := range s.strata.own {
		for _, p := range parts {
			for _, c := range p.pieces {
				c.counted = true
			}
		}
	}
	s.groups = slices.SortedFunc(maps.Keys(s.strata.pieces), func(a, b rowkey.Group) int {
		return cmp.Or(strings.Compare(a.Tenant.String(), b.Tenant.String()), strings.Compare(a.Dataset, b.Dataset), strings.Compare(a.Kind, b.Kind))
	})
}

// scaleOf returns the bytes read per byte of the service's sizes, from parts that were read to their end, and its
// relative error. Without such parts it returns 1 and an error of one half.
func scaleOf(parts []*part) (scale, spread float64) {
	var raw, size, off float64
	for _, p := range parts {
		raw += p.raw()
		size += p.size
	}
	if raw == 0 {
		return 1, 0.5
	}
	scale = raw / size
	if len(parts) == 1 {
		return scale, 0.25
	}
	for _, p := range parts {
		off += square(p.raw() - scale*p.size)
	}
	n := float64(len(parts))
	return scale, math.Sqrt(off*n/(n-1)) / raw
}

// share divides the unread bytes of a part among its known groups and the groups that the walk did not reach.
func (p *part) share(scale float64) {
	if p.finished() || !p.read() {
		return
	}
	sharers := 0
	for _, c := range p.pieces {
		sharers += int(one(!c.done))
	}
	beyond := !p.walked && (sharers == 0 || !p.pure)
	each := max(0, p.size*scale-p.raw()) / float64(sharers+int(one(beyond)))
	for _, c := range p.pieces {
		if !c.done {
			c.extra = each
		}
	}
	if beyond {
		p.extra = each
	}
}

func square(x float64) float64 { return x * x }
