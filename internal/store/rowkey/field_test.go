package rowkey_test

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// TestFieldKindsWriteTheseParts checks the parts that values become. They are stored, so they must never change.
func TestFieldKindsWriteTheseParts(t *testing.T) {
	type named string
	id := [16]byte{0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0}
	for _, tt := range []struct {
		kind  rowkey.FieldKind
		value any
		want  string
	}{
		{rowkey.FieldKind{}, "roof #7", "roof #7"},
		{rowkey.FieldKind{}, named("x"), "x"},
		{rowkey.Uint(6), 42, "000042"},
		{rowkey.Uint(6), uint8(7), "000007"},
		{rowkey.Uint(6), "42", "000042"},
		{rowkey.Uint(6), "000042", "000042"},
		{rowkey.Uint(1), 0, "0"},
		{rowkey.Uint(19), uint64(9999999999999999999), "9999999999999999999"},
		{rowkey.Uint(20), uint64(math.MaxUint64), "18446744073709551615"},
		{rowkey.Int(3), 7, "p007"},
		{rowkey.Int(3), -7, "n992"},
		{rowkey.Int(3), "-7", "n992"},
		{rowkey.Int(3), 0, "p000"},
		{rowkey.Int(3), -999, "n000"},
		{rowkey.Int(19), int64(math.MaxInt64), "p9223372036854775807"},
		{rowkey.Int(19), int64(math.MinInt64), "n0776627963145224191"},
		{rowkey.Int(18), int64(-999999999999999999), "n000000000000000000"},
		{rowkey.ReversedID, 1042, "24010000000000000000"},
		{rowkey.ReversedID, uint64(math.MaxUint64), "51615590737044764481"},
		{rowkey.ReversedDomain, "maps.example.com", "com.example.maps"},
		{rowkey.UUID, id, "123e4567-e89b-12d3-a456-426614174000"},
		{rowkey.UUID, "123E4567-E89B-12D3-A456-426614174000", "123e4567-e89b-12d3-a456-426614174000"},
	} {
		got, err := tt.kind.Part("f", tt.value)
		if got != tt.want || err != nil {
			t.Errorf("%v of %v = %q, %v, want %q", tt.kind, tt.value, got, err, tt.want)
		}
		s := space(t, "acme", "r", 1, 0).WithKinds([]rowkey.FieldKind{tt.kind})
		if err := s.CheckPath(rowkey.Path(got)); err != nil {
			t.Errorf("checking a part that %v wrote: got %v, want nil", tt.kind, err)
		}
		var text string
		if err := tt.kind.Scan("f", got, &text); err != nil {
			t.Errorf("Scan(%q) of %v: %v", got, tt.kind, err)
		}
		if again, err := tt.kind.Part("f", text); again != got || err != nil {
			t.Errorf("part of the text %q: got %q, %v, want the same part", text, again, err)
		}
	}
}

// TestFieldKindsRefuseOtherValues checks that an invalid value or part is refused with the field, the value and what is
// allowed.
func TestFieldKindsRefuseOtherValues(t *testing.T) {
	for _, tt := range []struct {
		kind  rowkey.FieldKind
		value any
		want  string
	}{
		{rowkey.FieldKind{}, "", "key field f is empty; want at least 1 byte of UTF-8"},
		{rowkey.FieldKind{}, "\xff", `key field f is "\xff"`},
		{rowkey.FieldKind{}, 7, "key field f is 7; want at least 1 byte of UTF-8"},
		{rowkey.FieldKind{}, nil, "key field f is nil"},
		{rowkey.Uint(3), 1000, "key field f is 1000; want a number from 0 to 999"},
		{rowkey.Uint(3), -1, "key field f is -1"},
		{rowkey.Uint(3), "+1", `key field f is "+1"`},
		{rowkey.Uint(3), 1.0, "key field f is a float64"},
		{rowkey.Uint(20), "18446744073709551616", "want a number from 0 to 18446744073709551615"},
		{rowkey.Int(2), 100, "key field f is 100; want a number from -99 to 99"},
		{rowkey.Int(2), -100, "key field f is -100"},
		{rowkey.Int(19), uint64(1 << 63), "want a number from -9223372036854775808 to 9223372036854775807"},
		{rowkey.ReversedID, -1, "key field f is -1"},
		{rowkey.ReversedDomain, "Maps.example.com", `key field f is "Maps.example.com"; want a domain name`},
		{rowkey.ReversedDomain, "example.com.", "want a domain name"},
		{rowkey.ReversedDomain, ".com", "want a domain name"},
		{rowkey.ReversedDomain, strings.Repeat("a", 64), "want a domain name"},
		{rowkey.ReversedDomain, strings.Repeat("abc.", 63) + "ab", "want a domain name"},
		{rowkey.UUID, "123e4567e89b12d3a456426614174000", "want 16 bytes, or a UUID as in"},
		{rowkey.UUID, "123e4567-e89b-12d3-a456-42661417400g", "want 16 bytes"},
		{rowkey.UUID, [15]byte{}, "key field f is a [15]uint8"},
		{rowkey.UUID, [16]int8{}, "key field f is a [16]int8"},
	} {
		if part, err := tt.kind.Part("f", tt.value); !errors.Is(err, rowkey.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v of %v = %q, %v, want ErrInvalid with %q", tt.kind, tt.value, part, err, tt.want)
		}
	}
	for _, tt := range []struct {
		kind rowkey.FieldKind
		part string
	}{
		{rowkey.Uint(3), "7"},
		{rowkey.Uint(3), "0007"},
		{rowkey.Uint(3), "00x"},
		{rowkey.Uint(3), "%207"},
		{rowkey.Uint(20), "18446744073709551616"},
		{rowkey.Int(3), "007"},
		{rowkey.Int(3), "-007"},
		{rowkey.Int(3), "n999"},
		{rowkey.Int(3), "p07"},
		{rowkey.Int(3), "q007"},
		{rowkey.Int(19), "p9223372036854775808"},
		{rowkey.Int(19), "n0776627963145224190"},
		{rowkey.Int(19), "n9999999999999999999"},
		{rowkey.ReversedID, "1042"},
		{rowkey.ReversedID, "61615590737044764481"},
		{rowkey.ReversedID, "99999999999999999999"},
		{rowkey.ReversedDomain, "com..maps"},
		{rowkey.ReversedDomain, "com.Maps"},
		{rowkey.ReversedDomain, "com."},
		{rowkey.UUID, "123E4567-e89b-12d3-a456-426614174000"},
		{rowkey.UUID, "x"},
	} {
		s := space(t, "acme", "r", 2, 0).WithKinds([]rowkey.FieldKind{tt.kind, tt.kind})
		for what, err := range map[string]error{"entity": s.CheckPath(tt.part + "#" + tt.part), "prefix": s.CheckPrefix(tt.part)} {
			if !errors.Is(err, rowkey.ErrInvalid) || !strings.Contains(err.Error(), "key field k1 is ") {
				t.Errorf("%s with the part %q of %v: got %v, want ErrInvalid for key field k1", what, tt.part, tt.kind, err)
			}
		}
		var text string
		if err := tt.kind.Scan("f", tt.part, &text); !errors.Is(err, rowkey.ErrInvalid) {
			t.Errorf("Scan(%q) of %v = %q, %v", tt.part, tt.kind, text, err)
		}
	}
}

func TestScanStoresValues(t *testing.T) {
	type id [16]byte
	var (
		text  string
		small int8
		wide  uint64
		uuid  id
		some  any
	)
	for _, tt := range []struct {
		kind  rowkey.FieldKind
		value any
		into  any
		want  func() bool
	}{
		{rowkey.FieldKind{}, "x", &text, func() bool { return text == "x" }},
		{rowkey.Int(3), -7, &small, func() bool { return small == -7 }},
		{rowkey.Int(3), -7, &some, func() bool { return some == int64(-7) }},
		{rowkey.Int(3), 7, &wide, func() bool { return wide == 7 }},
		{rowkey.Uint(3), 7, &some, func() bool { return some == uint64(7) }},
		{rowkey.Uint(3), 7, &small, func() bool { return small == 7 }},
		{rowkey.ReversedID, 1042, &wide, func() bool { return wide == 1042 }},
		{rowkey.ReversedDomain, "a.b", &some, func() bool { return some == "a.b" }},
		{rowkey.UUID, [16]byte{1}, &uuid, func() bool { return uuid == id{1} }},
		{rowkey.UUID, [16]byte{2}, &some, func() bool { return some == [16]byte{2} }},
		{rowkey.UUID, [16]byte{3}, &text, func() bool { return text == "03000000-0000-0000-0000-000000000000" }},
	} {
		part, err := tt.kind.Part("f", tt.value)
		if err != nil {
			t.Fatal(err)
		}
		if err := tt.kind.Scan("f", part, tt.into); err != nil || !tt.want() {
			t.Errorf("Scan(%q) of %v into %T: %v", part, tt.kind, tt.into, err)
		}
	}
	for _, tt := range []struct {
		kind rowkey.FieldKind
		part string
		into any
	}{
		{rowkey.Uint(3), "300", &small},
		{rowkey.Int(3), "n992", &wide},
		{rowkey.FieldKind{}, "7", &wide},
		{rowkey.Uint(3), "007", text},
		{rowkey.Uint(3), "007", nil},
		{rowkey.Uint(3), "007", (*uint64)(nil)},
		{rowkey.Uint(3), "007", &uuid},
		{rowkey.Uint(3), "007", new(error)},
	} {
		if err := tt.kind.Scan("f", tt.part, tt.into); !errors.Is(err, rowkey.ErrInvalid) || !strings.Contains(err.Error(), "target of key field f") {
			t.Errorf("Scan(%q) of %v into %T: %v, want ErrInvalid for the target", tt.part, tt.kind, tt.into, err)
		}
	}
}

func TestFieldKindNames(t *testing.T) {
	for _, name := range []string{"text", "uint1", "uint20", "int1", "int19", "reversed_id", "reversed_domain", "uuid"} {
		if k, err := rowkey.ParseFieldKind(name); err != nil || k.String() != name {
			t.Errorf("ParseFieldKind(%q) = %v, %v", name, k, err)
		}
	}
	for _, name := range []string{"", "uint", "uint0", "uint21", "int20", "uint06", "uint262", "text1", "uuid4", "Uint6", "6"} {
		if k, err := rowkey.ParseFieldKind(name); !errors.Is(err, rowkey.ErrInvalid) {
			t.Errorf("ParseFieldKind(%q) = %v, %v, want ErrInvalid", name, k, err)
		}
	}
	for _, k := range []rowkey.FieldKind{rowkey.Uint(0), rowkey.Uint(21), rowkey.Uint(-1), rowkey.Uint(262), rowkey.Int(0), rowkey.Int(20)} {
		if err := rowkey.CheckKinds([]string{"f"}, []rowkey.FieldKind{k}); !errors.Is(err, rowkey.ErrInvalid) {
			t.Errorf("CheckKinds(%v) = %v, want ErrInvalid", k, err)
		}
	}
	if err := rowkey.CheckKinds([]string{"f"}, nil); !errors.Is(err, rowkey.ErrInvalid) {
		t.Errorf("CheckKinds of a field without a kind: %v", err)
	}
}

func TestCheckKindsAllocatesNothing(t *testing.T) {
	kinds := []rowkey.FieldKind{rowkey.Uint(6), rowkey.Int(3), rowkey.ReversedID, rowkey.ReversedDomain, rowkey.UUID}
	s := space(t, "acme", "r", 5, 0).WithKinds(kinds)
	path := rowkey.Path("000042", "n992", "24010000000000000000", "com.example.maps", "123e4567-e89b-12d3-a456-426614174000")
	if err := s.CheckPath(path); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = s.CheckPath(path) }); n != 0 {
		t.Errorf("CheckPath allocates %v times", n)
	}
}

// FuzzFieldKinds checks that keys sort in the order of their values, and that values are read back from keys.
func FuzzFieldKinds(f *testing.F) {
	f.Add(int64(-7), int64(7), uint8(3))
	f.Add(int64(math.MinInt64), int64(math.MaxInt64), uint8(19))
	f.Add(int64(-10), int64(-9), uint8(2))
	f.Add(int64(0), int64(-1), uint8(1))
	f.Fuzz(func(t *testing.T, a, b int64, digits uint8) {
		signed, unsigned := rowkey.Int(1+int(digits%19)), rowkey.Uint(1+int(digits%20))
		check := func(kind rowkey.FieldKind, x, y any, order int, scan func(part string) (any, error)) {
			p, err := kind.Part("f", x)
			if err != nil {
				return
			}
			s := space(t, "acme", "r", 1, 0).WithKinds([]rowkey.FieldKind{kind})
			if err := s.CheckPath(rowkey.Path(p)); err != nil {
				t.Fatalf("%v of %v: %v", kind, x, err)
			}
			if back, err := scan(p); back != x || err != nil {
				t.Fatalf("%v of %v: got %[4]v, %[5]v back from %[3]q", kind, x, p, back, err)
			}
			q, err := kind.Part("f", y)
			if err != nil {
				return
			}
			key := func(part string) []byte { return s.AppendPoint(nil, rowkey.Path(part), 0) }
			if got := bytes.Compare(key(p), key(q)); got != order {
				t.Fatalf("%v of %v and %v: got order %d, want %d", kind, x, y, got, order)
			}
		}
		check(signed, a, b, cmp.Compare(a, b), func(part string) (any, error) {
			var n int64
			err := signed.Scan("f", part, &n)
			return n, err
		})
		check(unsigned, uint64(a), uint64(b), cmp.Compare(uint64(a), uint64(b)), func(part string) (any, error) {
			var n uint64
			err := unsigned.Scan("f", part, &n)
			return n, err
		})
		var x, y [16]byte
		for i := range 8 {
			x[i], y[15-i] = byte(a>>(8*i)), byte(b>>(8*i))
		}
		check(rowkey.UUID, x, y, bytes.Compare(x[:], y[:]), func(part string) (any, error) {
			var id [16]byte
			err := rowkey.UUID.Scan("f", part, &id)
			return id, err
		})
	})
}

// FuzzFieldParts checks that each value has only one valid part.
func FuzzFieldParts(f *testing.F) {
	for _, part := range []string{"000042", "n992", "p9223372036854775807", "24010000000000000000", "com.example.maps", "123e4567-e89b-12d3-a456-426614174000"} {
		f.Add(part)
	}
	f.Fuzz(func(t *testing.T, part string) {
		for _, name := range []string{"text", "uint6", "uint20", "int3", "int18", "int19", "reversed_id", "reversed_domain", "uuid"} {
			kind, err := rowkey.ParseFieldKind(name)
			if err != nil {
				t.Fatal(err)
			}
			s := space(t, "acme", "r", 1, 0).WithKinds([]rowkey.FieldKind{kind})
			if s.CheckPath(rowkey.Path(part)) != nil {
				continue
			}
			var value any
			if err := kind.Scan("f", part, &value); err != nil {
				t.Fatalf("%s accepts %q, but Scan fails: %v", name, part, err)
			}
			if again, err := kind.Part("f", value); again != part || err != nil {
				t.Fatalf("%s reads %q as %v, but writes it as %q, %v", name, part, value, again, err)
			}
		}
	})
}
