package engine

import (
	"context"
	"regexp"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

var familyID = regexp.MustCompile(`^[-_.a-zA-Z0-9]{1,64}$`)

// ModifyColumnFamilies implements the service's method. It applies all modifications, in their order, or none.
func (e *Engine) ModifyColumnFamilies(ctx context.Context, req *adminpb.ModifyColumnFamiliesRequest) (*adminpb.Table, error) {
	var out *adminpb.Table
	err := e.change(ctx, func() error {
		t, err := e.table(req.GetName())
		if err != nil {
			return err
		}
		if len(req.GetModifications()) == 0 {
			return invalidf("No modifications provided")
		}
		s := t.schema.Load().clone()
		for _, m := range req.GetModifications() {
			if err := s.modify(t.name, m); err != nil {
				return err
			}
		}
		if err := e.storeSchema(t, s); err != nil {
			return err
		}
		out = t.message(adminpb.Table_SCHEMA_VIEW)
		return nil
	})
	return out, err
}

// modify applies one modification to a schema that is not in use yet.
func (s *schema) modify(tableName string, m *adminpb.ModifyColumnFamiliesRequest_Modification) error {
	switch mod := m.GetMod().(type) {
	case *adminpb.ModifyColumnFamiliesRequest_Modification_Create:
		return s.create(m.GetId(), mod.Create)
	case *adminpb.ModifyColumnFamiliesRequest_Modification_Update:
		return s.update(m.GetId(), mod.Update, m.GetUpdateMask().GetPaths())
	case *adminpb.ModifyColumnFamiliesRequest_Modification_Drop:
		if !mod.Drop {
			return invalidf("Family %q: drop must be true if set", m.GetId())
		}
		f := s.families[m.GetId()]
		switch {
		case f == nil:
			return unknownFamily(m.GetId())
		case s.protected:
			return status.Errorf(codes.FailedPrecondition, protectedMsg, tableName)
		}
		s.drop(f)
		return nil
	}
	return invalidf("Family %q: modification is not set", m.GetId())
}

// create adds a family, with a number that no family of the table ever had.
func (s *schema) create(id string, cf *adminpb.ColumnFamily) error {
	if !familyID.MatchString(id) {
		return invalidf("Family %q: want 1 to 64 of [-_.a-zA-Z0-9]", id)
	}
	if s.families[id] != nil {
		return status.Errorf(codes.AlreadyExists, "Family %q already exists", id)
	}
	if s.nextFamily >= maxTables {
		return status.Error(codes.ResourceExhausted, "The table has no numbers for families left")
	}
	f := &family{id: s.nextFamily, name: id}
	if err := f.setRule(cf.GetGcRule()); err != nil {
		return err
	}
	a, err := aggregateOf(cf.GetValueType())
	if err != nil {
		return err
	}
	f.aggregate, f.valueType = a, storedType(cf.GetValueType())
	s.nextFamily++
	s.put(f)
	return nil
}

// update changes a family's GC rule and value type. It does not change the aggregation.
func (s *schema) update(id string, cf *adminpb.ColumnFamily, paths []string) error {
	old := s.families[id]
	if old == nil {
		return unknownFamily(id)
	}
	if len(paths) == 0 {
		paths = []string{"gc_rule"}
	}
	f := *old
	for _, p := range paths {
		switch p {
		case "gc_rule":
			if err := f.setRule(cf.GetGcRule()); err != nil {
				return err
			}
		case "value_type":
			a, err := aggregateOf(cf.GetValueType())
			if err != nil {
				return err
			}
			if a != f.aggregate {
				return invalidf("Immutable fields 'value_type.aggregate_type.*' cannot be updated: family %q", id)
			}
			f.valueType = storedType(cf.GetValueType())
		default:
			return invalidf("Family %q: incorrect path %q in update_mask", id, p)
		}
	}
	s.put(&f)
	return nil
}

// setRule checks a GC rule and keeps a copy of it.
func (f *family) setRule(rule *adminpb.GcRule) error {
	if err := checkGCRule(rule); err != nil {
		return invalidf("Family %q: %v", f.name, err)
	}
	f.rule = nil
	if rule.GetRule() != nil {
		f.rule = proto.CloneOf(rule)
	}
	return nil
}
