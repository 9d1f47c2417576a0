package points

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
)

func field(name string, v codec.Value) codec.Field { return codec.Field{Name: name, Value: v} }

func encoded(t testing.TB, r codec.Record) []byte {
	t.Helper()
	payload, err := codec.Append(codec.Records(), nil, r)
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

func TestMergeRecordsRefuses(t *testing.T) {
	half := func(prefix string) codec.Record {
		fields := make([]codec.Field, codec.MaxFields/2+1)
		for i := range fields {
			fields[i] = field(fmt.Sprintf("%s%04d", prefix, i), codec.Bool(true))
		}
		return codec.NewRecord(fields...)
	}
	one := encoded(t, codec.NewRecord(field("a", codec.Int(1))))
	for _, tt := range []struct {
		name            string
		stored, written []byte
		want            error
	}{
		{"stored is damaged", []byte("\x01\x01ax"), one, codec.ErrCorrupt},
		{"stored is empty", nil, one, codec.ErrCorrupt},
		{"written is damaged", one, []byte("\x01\x01ax"), codec.ErrCorrupt},
		{"more fields than a record has", encoded(t, half("a")), encoded(t, half("b")), codec.ErrEncode},
	} {
		if out, err := mergeRecords(tt.stored, tt.written); out != nil || !errors.Is(err, tt.want) {
			t.Errorf("%s: %q, %v, want %v", tt.name, out, err, tt.want)
		}
	}
	if out, err := mergeRecords(encoded(t, half("a")), encoded(t, half("a"))); err != nil || !bytes.Equal(out, encoded(t, half("a"))) {
		t.Errorf("a record merged with itself: %q, %v", out, err)
	}
}

func FuzzMergeRecords(f *testing.F) {
	f.Add([]byte("\x03\x01ni\x05\x02okT\x04tempf\x40\x35\x80\x00\x00\x00\x00\x00"), []byte("\x02\x01as\x02hi\x01nu\xff\x01"))
	f.Add([]byte("\x00"), []byte("\x01\x01aT"))
	f.Fuzz(func(t *testing.T, stored, written []byte) {
		a, errA := codec.Records().Decode(stored)
		b, errB := codec.Records().Decode(written)
		merged, err := mergeRecords(stored, written)
		if errA != nil || errB != nil {
			if !errors.Is(err, codec.ErrCorrupt) {
				t.Fatalf("MergeRecords(%q, %q) = %v, want ErrCorrupt", stored, written, err)
			}
			return
		}
		if err != nil {
			if a.Merge(b).Len() <= codec.MaxFields || !errors.Is(err, codec.ErrEncode) {
				t.Fatalf("MergeRecords(%v, %v): %v", a, b, err)
			}
			return
		}
		got, err := codec.Records().Decode(merged)
		if err != nil || !got.Equal(a.Merge(b)) {
			t.Fatalf("MergeRecords(%v, %v) = %v, %v", a, b, got, err)
		}
		again, err := mergeRecords(merged, written)
		if err != nil || !bytes.Equal(again, merged) {
			t.Fatalf("merging %v again makes %q of %q, %v", b, again, merged, err)
		}
	})
}
