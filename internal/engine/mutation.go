package engine

import (
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	maxQualifier = 16 << 10
	maxCell      = 100 << 20
	maxMutations = 100_000
	serverTime   = -1
)

func unknownFamily(name string) error { return notFoundf("Unknown family %q", name) }

func checkRowKey(key []byte) error {
	switch {
	case len(key) == 0:
		return invalidf("Row keys must be non-empty")
	case len(key) > maxRowKey:
		return invalidf("Row key has %d bytes, want at most %d", len(key), maxRowKey)
	}
	return nil
}

func checkQualifier(q []byte) error {
	if len(q) > maxQualifier {
		return invalidf("Column qualifier has %d bytes, want at most %d", len(q), maxQualifier)
	}
	return nil
}

func checkValue(v []byte) error {
	if len(v) > maxCell {
		return invalidf("Cell value has %d bytes, want at most %d", len(v), maxCell)
	}
	return nil
}

// checkEntry checks a row's key and mutations. blind means that applying them reads nothing.
func checkEntry(at target, s *schema, key []byte, muts []*bigtablepb.Mutation) (blind bool, err error) {
	if err := checkRow(at, key); err != nil {
		return false, err
	}
	if len(muts) == 0 {
		return false, invalidf("No mutations provided")
	}
	return checkMutations(at, s, muts)
}

// checkRow checks a row's key, and that the view allows changing the row.
func checkRow(at target, key []byte) error {
	if err := checkRowKey(key); err != nil {
		return err
	}
	if at.view != nil && !at.view.hasRow(key) {
		return deniedf("Row %.64q is not in the authorized view", key)
	}
	return nil
}

func checkMutations(at target, s *schema, muts []*bigtablepb.Mutation) (blind bool, err error) {
	blind = true
	size := 0
	for _, m := range muts {
		set, ok := m.GetMutation().(*bigtablepb.Mutation_SetCell_)
		if !ok {
			blind = false
			if err := checkOther(at, s, m); err != nil {
				return false, err
			}
			continue
		}
		c := set.SetCell
		f := s.families[c.GetFamilyName()]
		switch {
		case f == nil:
			return false, unknownFamily(c.GetFamilyName())
		case f.aggregate != aggregateNone:
			return false, invalidf("SetCell: family %q is an aggregate family", f.name)
		}
		if at.view != nil && !at.view.hasColumn(f.name, c.GetColumnQualifier()) {
			return false, outsideView(f.name, c.GetColumnQualifier())
		}
		if err := checkQualifier(c.GetColumnQualifier()); err != nil {
			return false, err
		}
		if err := checkValue(c.GetValue()); err != nil {
			return false, err
		}
		if size += len(c.GetValue()) + len(c.GetColumnQualifier()); size > maxRowBytes {
			return false, invalidf("The mutation holds more than %d bytes, which is the most that can be read of a row",
				maxRowBytes)
		}
		if c.GetTimestampMicros() == serverTime || s.autoTimestamp(m) {
			continue
		}
		if err := s.checkTimestamp(c.GetTimestampMicros()); err != nil {
			return false, err
		}
	}
	return blind, nil
}

// autoTimestamp reports whether the client generated the timestamp of a SetCell. A generated timestamp is rounded to
// the table's granularity; a timestamp that the user chose and that does not fit is refused.
func (s *schema) autoTimestamp(m *bigtablepb.Mutation) bool {
	return m.GetTimestampOrigin() == bigtablepb.Mutation_CLIENT_AUTO_GENERATED && m.GetSetCell().GetTimestampMicros() >= 0
}

func outsideView(family string, qualifier []byte) error {
	return deniedf("Column %q:%.64q is not in the authorized view", family, qualifier)
}

// checkOther checks all mutations except SetCell.
func checkOther(at target, s *schema, m *bigtablepb.Mutation) error {
	switch m := m.GetMutation().(type) {
	case *bigtablepb.Mutation_AddToCell_:
		a, err := s.addition(m.AddToCell)
		return checkAccumulation(at, a, err)
	case *bigtablepb.Mutation_MergeToCell_:
		a, err := s.merge(m.MergeToCell)
		return checkAccumulation(at, a, err)
	case *bigtablepb.Mutation_DeleteFromColumn_:
		return checkDeleteFromColumn(at, s, m.DeleteFromColumn)
	case *bigtablepb.Mutation_DeleteFromFamily_:
		name := m.DeleteFromFamily.GetFamilyName()
		if s.families[name] == nil {
			return unknownFamily(name)
		}
		if at.view != nil && !at.view.hasFamily(name) {
			return deniedf("Family %q is not wholly in the authorized view", name)
		}
		return nil
	case *bigtablepb.Mutation_DeleteFromRow_:
		if at.view != nil {
			for name := range s.families {
				if !at.view.hasFamily(name) {
					return deniedf("Family %q is not wholly in the authorized view", name)
				}
			}
		}
		return nil
	case nil:
		return invalidf("Mutation is not set")
	default:
		return status.Errorf(codes.Unimplemented, "Mutation %T is not offered", m)
	}
}

func checkAccumulation(at target, a accumulation, err error) error {
	if err != nil {
		return err
	}
	if at.view != nil && !at.view.hasColumn(a.family.name, a.qualifier) {
		return outsideView(a.family.name, a.qualifier)
	}
	return nil
}

func checkDeleteFromColumn(at target, s *schema, d *bigtablepb.Mutation_DeleteFromColumn) error {
	f := s.families[d.GetFamilyName()]
	if f == nil {
		return unknownFamily(d.GetFamilyName())
	}
	if err := checkQualifier(d.GetColumnQualifier()); err != nil {
		return err
	}
	if at.view != nil && !at.view.hasColumn(f.name, d.GetColumnQualifier()) {
		return outsideView(f.name, d.GetColumnQualifier())
	}
	r := d.GetTimeRange()
	if r == nil {
		return nil
	}
	start, end := r.GetStartTimestampMicros(), r.GetEndTimestampMicros()
	if err := s.checkTimestamp(start); err != nil {
		return err
	}
	if end == 0 {
		return nil
	}
	if err := s.checkTimestamp(end); err != nil {
		return err
	}
	if start >= end {
		return invalidf("Inverted or invalid timestamp range [%d, %d]", start, end)
	}
	return nil
}
