package engine

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/proto"
)

// table is one table in memory. Each request loads its schema once and uses that one to its end.
type table struct {
	id   uint32
	name string

	// gate is locked for reading while a write is decided and applied, and for writing by operations that change many
	// rows: dropping rows, families or the table. So no write is applied that was decided on a schema or on cells that
	// were deleted.
	gate    sync.RWMutex
	dropped bool // under gate

	garbage garbage // under Engine.collecting

	schema atomic.Pointer[schema]
	views  atomic.Pointer[map[string]*view]
}

// schema is a table's definition at one moment. It never changes.
type schema struct {
	families    map[string]*family
	byID        map[uint32]*family
	granularity adminpb.Table_TimestampGranularity
	protected   bool
	tiers       *adminpb.TieredStorageConfig // nil for one tier
	changes     *adminpb.ChangeStreamConfig  // nil for no change stream
	splits      [][]byte
	nextFamily  uint32
}

// family is one column family. It never changes.
type family struct {
	id        uint32
	name      string
	aggregate aggregate
	rule      *adminpb.GcRule
	valueType *adminpb.Type
}

// unit is the table's granularity in microseconds.
func (s *schema) unit() int64 {
	if s.granularity == adminpb.Table_MICROS {
		return 1
	}
	return 1000
}

// truncate rounds a timestamp down to the table's granularity.
func (s *schema) truncate(micros int64) int64 { return micros - micros%s.unit() }

// checkTimestamp returns an error if a timestamp cannot be stored in the table.
func (s *schema) checkTimestamp(micros int64) error {
	unit := s.unit()
	switch {
	case micros < 0 || micros > math.MaxInt64-math.MaxInt64%unit:
		return invalidf("Invalid timestamp %d: want 0 or more", micros)
	case micros%unit != 0:
		return invalidf("Timestamp granularity mismatch: %d is not a multiple of %d microseconds, as the table's %v "+
			"granularity asks for", micros, unit, s.granularity)
	}
	return nil
}

// clone returns a copy whose families can be changed.
func (s *schema) clone() *schema {
	c := *s
	c.families = maps.Clone(s.families)
	c.byID = maps.Clone(s.byID)
	return &c
}

func (s *schema) put(f *family) {
	s.families[f.name] = f
	s.byID[f.id] = f
}

func (s *schema) drop(f *family) {
	delete(s.families, f.name)
	delete(s.byID, f.id)
}

// dropped reports whether a cell of a family can never be visible again because its family was dropped. A family that
// is newer than the schema is not dropped.
func (s *schema) dropped(family uint32) bool { return family < s.nextFamily && s.byID[family] == nil }

// record returns the stored form of the schema.
func (s *schema) record(id uint32) (tableRecord, error) {
	r := tableRecord{
		ID: id, NextFamily: s.nextFamily, Granularity: int32(s.granularity), Protected: s.protected, Splits: s.splits,
		Families: make(map[string]familyRecord, len(s.families)),
	}
	var err error
	// A message that is not set has no bytes.
	encode := func(m proto.Message) []byte {
		b, failed := proto.Marshal(m)
		err = cmp.Or(err, failed)
		return b
	}
	r.Tiers, r.ChangeStream = encode(s.tiers), encode(s.changes)
	for name, f := range s.families {
		r.Families[name] = familyRecord{ID: f.id, GCRule: encode(f.rule), ValueType: encode(f.valueType)}
	}
	if err != nil {
		return r, fmt.Errorf("engine: encoding a schema: %w", err)
	}
	return r, nil
}

// schemaOf rebuilds a schema from its record.
func schemaOf(r tableRecord) (*schema, error) {
	s := newSchema(adminpb.Table_TimestampGranularity(r.Granularity))
	s.protected, s.splits, s.nextFamily = r.Protected, r.Splits, r.NextFamily
	var err error
	if s.tiers, err = decode[adminpb.TieredStorageConfig](r.Tiers); err != nil {
		return nil, fmt.Errorf("%w: tiered storage: %w", ErrDamaged, err)
	}
	if s.changes, err = decode[adminpb.ChangeStreamConfig](r.ChangeStream); err != nil {
		return nil, fmt.Errorf("%w: change stream: %w", ErrDamaged, err)
	}
	for name, fr := range r.Families {
		f := &family{id: fr.ID, name: name}
		if f.rule, err = decode[adminpb.GcRule](fr.GCRule); err != nil {
			return nil, fmt.Errorf("%w: GC rule of family %q: %w", ErrDamaged, name, err)
		}
		if f.valueType, err = decode[adminpb.Type](fr.ValueType); err == nil {
			f.aggregate, err = aggregateOf(f.valueType)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: value type of family %q: %w", ErrDamaged, name, err)
		}
		s.put(f)
	}
	return s, nil
}

// decode decodes a part of a record; nil if the part is not set.
func decode[M any, P interface {
	*M
	proto.Message
}](b []byte) (P, error) {
	if len(b) == 0 {
		return nil, nil
	}
	m := P(new(M))
	return m, proto.Unmarshal(b, m)
}

func newSchema(g adminpb.Table_TimestampGranularity) *schema {
	if g == adminpb.Table_TIMESTAMP_GRANULARITY_UNSPECIFIED {
		g = adminpb.Table_MILLIS
	}
	return &schema{families: make(map[string]*family), byID: make(map[uint32]*family), granularity: g}
}

// columnFamilies returns the schema as the admin API shows it. The messages are copies.
func (s *schema) columnFamilies() map[string]*adminpb.ColumnFamily {
	out := make(map[string]*adminpb.ColumnFamily, len(s.families))
	for name, f := range s.families {
		out[name] = &adminpb.ColumnFamily{GcRule: proto.CloneOf(f.rule), ValueType: proto.CloneOf(f.valueType)}
	}
	return out
}

// sortedNames returns the keys of a map in order, so that results do not depend on map order.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
