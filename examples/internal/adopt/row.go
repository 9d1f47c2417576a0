package adopt

import (
	"cmp"
	"slices"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// point is a point of the foreign table, as the dataset stores it.
type point struct {
	place
	payload []byte
}

// points visits the points of a row: by ascending time if the row holds several. It reports what is unfit to wrong, and
// goes on unless that returns an error.
func (m *Mapping) points(row *bt.Row, p rowkey.Precision, visit func(point) error, wrong func(*Unfit) error) error {
	at, bad := m.split(row.Key(), p)
	if bad != nil {
		return wrong(bad)
	}
	if m.inKey {
		return m.onePoint(row, at, visit, wrong)
	}
	return m.versions(row, at, p, visit, wrong)
}

// onePoint visits the point of a row in a table whose keys have the time.
func (m *Mapping) onePoint(row *bt.Row, at place, visit func(point) error, wrong func(*Unfit) error) error {
	var cells []cell
	last := ""
	versions := 0
	for _, c := range row.Cells() { // of each column the newest first
		if c.Column == last {
			versions++
			continue
		}
		last = c.Column
		i := m.column(c.Column)
		if i >= 0 {
			cells = append(cells, cell{i, c.Value})
		} else if err := wrong(unfit(reasonColumns, row.Key(), "column %q is not in the mapping", short(c.Column))); err != nil {
			return err
		}
	}
	if versions > 0 {
		if err := wrong(unfit(reasonVersions, row.Key(), "%d cells are older versions", versions)); err != nil {
			return err
		}
	}
	return m.emit(row.Key(), at, cells, visit, wrong)
}

// versions visits the points of a row in a table whose cells have the time.
func (m *Mapping) versions(row *bt.Row, at place, p rowkey.Precision, visit func(point) error, wrong func(*Unfit) error) error {
	type version struct {
		bigtable.Timestamp
		cell
	}
	all := make([]version, 0, len(row.Cells()))
	unknown := ""
	for _, c := range row.Cells() {
		if i := m.column(c.Column); i >= 0 {
			all = append(all, version{c.Timestamp, cell{i, c.Value}})
		} else if c.Column != unknown {
			unknown = c.Column
			if err := wrong(unfit(reasonColumns, row.Key(), "column %q is not in the mapping", short(c.Column))); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(all, func(a, b version) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Timestamp == all[0].Timestamp {
			n++
		}
		cells := make([]cell, n)
		for i, v := range all[:n] {
			cells[i] = v.cell
		}
		units, problem := int64(0), "before 1970"
		if all[0].Timestamp >= 0 {
			units, problem = m.time.units(uint64(all[0].Timestamp), p)
		}
		var err error
		if problem != "" {
			err = wrong(unfit(reasonTimes, row.Key(), "cell timestamp %d: %s", all[0].Timestamp, problem))
		} else {
			at.units = units
			err = m.emit(row.Key(), at, cells, visit, wrong)
		}
		if err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// emit visits the point with these cells.
func (m *Mapping) emit(key string, at place, cells []cell, visit func(point) error, wrong func(*Unfit) error) error {
	if len(cells) == 0 {
		return wrong(unfit(reasonValues, key, "it has none of the mapped columns"))
	}
	payload, err := m.payload(cells)
	if err != nil {
		return wrong(unfit(reasonValues, key, "%v", err))
	}
	return visit(point{at, payload})
}
