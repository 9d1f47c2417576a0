package engine

import (
	"testing"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
)

func FuzzTableRecord(f *testing.F) {
	s := newSchema(adminpb.Table_MILLIS)
	_ = s.create("f", &adminpb.ColumnFamily{GcRule: &adminpb.GcRule{Rule: &adminpb.GcRule_MaxNumVersions{MaxNumVersions: 2}}})
	r, _ := s.record(3)
	b, _ := encodeTable(r)
	f.Add(b)
	f.Add([]byte{recordVersion})
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeTable(b)
		if err != nil {
			return
		}
		s, err := schemaOf(r)
		if err != nil {
			return
		}
		again, err := s.record(r.ID)
		if err != nil {
			t.Fatalf("a decoded record cannot be encoded again: %v", err)
		}
		if len(again.Families) != len(r.Families) || again.NextFamily != r.NextFamily || again.Granularity == 0 {
			t.Fatalf("record %+v is encoded again as %+v", r, again)
		}
	})
}

func FuzzViewRecord(f *testing.F) {
	b, _ := encodeView(&adminpb.AuthorizedView{Name: "v"})
	f.Add(b)
	f.Add([]byte{recordVersion, 0xFF})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeView(b)
		if err != nil {
			return
		}
		v := newView(m)
		v.hasRow([]byte("row"))
		v.hasColumn("f", []byte("q"))
		v.hasFamily("f")
		v.spans(1)
	})
}
