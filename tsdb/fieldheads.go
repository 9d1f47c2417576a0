package tsdb

import (
	"cmp"
	"context"
	"slices"

	"github.com/tidemark-go/tidemark/internal/fields"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

// headsHave reports whether heads have the newest fields.
func (f *fieldSource) headsHave(o FieldOptions) bool {
	d := f.rows.D
	return d.Head.Fields && o.AsOf.IsZero() && f.layouts[0].Format == d.Tags[0]
}

// fromHeads completes the scans whose heads have all fields. It returns the error of each scan.
func (f *fieldSource) fromHeads(ctx context.Context, scans []*fieldScan, options FieldOptions, o points.Options) []error {
	errs := make([]error, len(scans))
	if len(scans) == 0 || !f.headsHave(options) {
		return errs
	}
	paths := make([]string, len(scans))
	for i, s := range scans {
		paths[i] = s.entity.path
	}
	f.rows.NewestFields(ctx, paths, o, func(i int, list []dataset.HeadField, sure bool, err error) {
		errs[i] = err
		if err == nil && sure {
			scans[i].takeHead(list)
		}
	})
	return errs
}

// takeHead takes the fields of the entity's head, unless there are none or too many, or they do not decode: the points
// decide then.
func (s *fieldScan) takeHead(list []dataset.HeadField) {
	if len(list) == 0 || len(list) > fields.MaxFound {
		return
	}
	slices.SortStableFunc(list, func(a, b dataset.HeadField) int { return cmp.Compare(b.Cell, a.Cell) })
	s.of = &s.layouts[0]
	s.newest = fields.NewNewest(s.of.shape, len(list))
	for i := range list {
		s.newest.Add(list[i].Path, list[i].Raw, list[i].Units())
	}
	s.seen, s.done = 1, true
	payload, err := s.newest.Join(s.of.Format)
	if err == nil {
		s.value, err = s.joined(payload)
	}
	if err != nil {
		*s = *s.newFieldScan(s.entity, s.options)
	}
}
