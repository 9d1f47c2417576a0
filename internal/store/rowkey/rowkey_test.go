package rowkey_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// hostile are parts that a careless encoding would confuse with each other or with its delimiters.
var hostile = []string{
	"a", "ab", "a#", "#a", "#", "##", "%", "%23", "%2", "a%23b", "a#b", " ", "!", "$", "\x00", "\x01", "\x1f", "&",
	"0042", "42", "9223372036854775807", "9223372036854775808", "0000000000000000000", "berlin", "berlin#0042", "berlin%230042",
	"東京", "é", "e\u0301", "\u200b", "\U0001F69A", "~", "\x7f", strings.Repeat("x", 300), strings.Repeat("#", 300),
}

func fields(n int) []string {
	return []string{"k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"}[:n]
}

func space(t testing.TB, id, dataset string, nfields, salts int) rowkey.Space {
	t.Helper()
	tid, err := tenant.Parse(id)
	if err != nil {
		t.Fatal(err)
	}
	s, err := rowkey.NewSpace(tid, dataset, fields(nfields), salts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPointKeyIsTheDocumentedOne(t *testing.T) {
	for _, tt := range []struct {
		salts int
		parts []string
		units int64
		want  string
	}{
		{0, []string{"berlin", "roof-7"}, 1767225600000000000, "acme#readings#berlin#roof-7#7456146436854775807"},
		{0, []string{"a b", "#%\x00$%"}, 0, "acme#readings#a%20b#%23%25%00%24%25#9223372036854775807"},
		{16, []string{"berlin", "roof-7"}, 1<<63 - 1, "acme#readings#12#berlin#roof-7#0000000000000000000"},
	} {
		s := space(t, "acme", "readings", 2, tt.salts)
		if got := string(s.AppendPoint(nil, rowkey.Path(tt.parts...), tt.units)); got != tt.want {
			t.Errorf("key of %q at %d = %q, want %q: stored rows would no longer be found", tt.parts, tt.units, got, tt.want)
		}
	}
}

// TestHostileParts compares all pairs of entities of hostile parts: their order, and that no two share a key.
func TestHostileParts(t *testing.T) {
	s := space(t, "acme", "readings", 2, 0)
	var entities [][]string
	for _, a := range hostile {
		for _, b := range hostile {
			entities = append(entities, []string{a, b})
		}
	}
	slices.SortFunc(entities, slices.Compare)
	last := ""
	for _, parts := range entities {
		path := rowkey.Path(parts...)
		if err := s.CheckPath(path); err != nil {
			t.Fatalf("CheckPath(%q): %v", parts, err)
		}
		newer, older := string(s.AppendPoint(nil, path, 1e18+1)), string(s.AppendPoint(nil, path, 1e18))
		if !(last < newer && newer < older) {
			t.Fatalf("%q: got keys out of order: %q, %q, %q", parts, last, newer, older)
		}
		last = older
		gotPath, units, ok := s.Split(newer)
		if !ok || units != 1e18+1 || !slices.Equal(rowkey.Parts(gotPath), parts) {
			t.Fatalf("Split(%q) = %q, %d, %v; want %q", newer, rowkey.Parts(gotPath), units, ok, parts)
		}
	}
}

func TestSplitRefusesForeignKeys(t *testing.T) {
	s := space(t, "acme", "readings", 2, 0)
	salted := space(t, "acme", "readings", 2, 4)
	good := string(s.AppendPoint(nil, "berlin#roof-7", 5))
	if _, _, ok := s.Split(good); !ok {
		t.Fatalf("Split(%q) refuses a point's key", good)
	}
	for _, key := range []string{
		"", "acme", "acme#readings", "acme#readings#", "acme2#readings#berlin#roof-7#9223372036854775807",
		"acme#readings2#berlin#roof-7#9223372036854775807", "acme#readings!head#berlin#roof-7#9223372036854775807",
		"!format", "acme#readings#berlin#9223372036854775807", "acme#readings#berlin#roof-7#x#9223372036854775807",
		"acme#readings#berlin#roof-7#922337203685477580", "acme#readings#berlin#roof-7#9223372036854775808",
		"acme#readings#berlin#roof-7#-223372036854775807", "acme#readings#berlin##9223372036854775807",
		"acme#readings##roof-7#9223372036854775807", "acme#readings#ber lin#roof-7#9223372036854775807",
		"acme#readings#ber%2flin#roof-7#9223372036854775807", "acme#readings#ber%23lin%#roof-7#9223372036854775807",
		"acme#readings#ber%26lin#roof-7#9223372036854775807", "acme#readings#\xff#roof-7#9223372036854775807",
		"acme#readings#berlin#roof-7#9223372036854775807#",
	} {
		if path, units, ok := s.Split(key); ok {
			t.Errorf("Split(%q) = %q, %d, want it refused: the row is not of the dataset", key, path, units)
		}
	}
	if path, _, ok := salted.Split(good); ok {
		t.Errorf("a salted space accepts the unsalted key %q as %q", good, path)
	}
	key := string(salted.AppendPoint(nil, "berlin#roof-7", 5))
	wrong := strings.Replace(key, key[14:16], "00", 1)
	if key[14:16] == "00" {
		wrong = strings.Replace(key, "#00#", "#01#", 1)
	}
	if _, _, ok := salted.Split(wrong); ok {
		t.Errorf("Split(%q) accepts another entity's salt", wrong)
	}
}

func TestRangesHoldTheirEntityAndNothingElse(t *testing.T) {
	for _, salts := range []int{0, 4} {
		s := space(t, "acme", "readings", 2, salts)
		times := []int64{0, 1, 999, 1e18, 1<<63 - 2, 1<<63 - 1}
		for _, a := range hostile {
			for _, b := range []string{"x", "xy", "#", "\x00"} {
				path := rowkey.Path(a, b)
				whole := s.Entity(path, 0, 1<<63-1)
				part := s.Entity(path, 1, 1e18)
				for _, oa := range hostile {
					other := rowkey.Path(oa, b)
					for _, at := range times {
						key := string(s.AppendPoint(nil, other, at))
						if in(whole, key) != (oa == a) {
							t.Fatalf("range of %q: got it to contain %q: %v", path, key, in(whole, key))
						}
						if in(part, key) != (oa == a && at >= 1 && at <= 1e18) {
							t.Fatalf("range [1, 1e18] of %q: got it to contain %q: %v", path, key, in(part, key))
						}
					}
				}
			}
		}
		for _, a := range hostile {
			under := s.Under(rowkey.Path(a))
			for _, oa := range hostile {
				key := string(s.AppendPoint(nil, rowkey.Path(oa, "x"), 7))
				if got := slices.ContainsFunc(under, func(r rowkey.Range) bool { return in(r, key) }); got != (oa == a) {
					t.Fatalf("prefix %q: got it to contain %q: %v", a, key, got)
				}
			}
		}
	}
}

func in(r rowkey.Range, key string) bool { return r.Start <= key && key < r.Limit }

func TestAllOfOneTenant(t *testing.T) {
	acme, acme2 := space(t, "acme", "r", 1, 0), space(t, "acme2", "r", 1, 0)
	all := acme.Under("")
	if len(all) != 1 || !in(all[0], string(acme.AppendPoint(nil, "x", 0))) || in(all[0], string(acme2.AppendPoint(nil, "x", 0))) {
		t.Errorf("got %q for all of acme", all)
	}
	for _, key := range []string{rowkey.FormatRow, rowkey.DatasetRows + "r", "acme#r!head#x#", "acme#r2#x#9223372036854775807"} {
		if in(all[0], key) {
			t.Errorf("the range of all points of acme's r contains %q", key)
		}
	}
}

func TestChecksNameFieldValueAndLimit(t *testing.T) {
	s := space(t, "acme", "readings", 2, 0)
	for _, tt := range []struct{ path, want string }{
		{"", "entity is empty with 0 parts; want exactly 2, one for each key field (k1, k2)"},
		{rowkey.Path("a"), `entity is "a" with 1 part; want exactly 2, one for each key field (k1, k2)`},
		{rowkey.Path("a", "b", "c"), `entity is "a/b/c" with 3 parts; want exactly 2, one for each key field (k1, k2)`},
		{rowkey.Path("a", ""), "key field k2 is empty; want at least 1 byte"},
		{rowkey.Path("", "b"), "key field k1 is empty; want at least 1 byte"},
		{rowkey.Path("a", "b\xff"), `key field k2 is "b\xff"; want valid UTF-8`},
		{rowkey.Path("a", strings.Repeat("b", 4096)), "row key is 4132 bytes for entity"},
	} {
		err := s.CheckPath(tt.path)
		if !errors.Is(err, rowkey.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("CheckPath(%.20q) = %v, want %q", tt.path, err, tt.want)
		}
	}
	if err := s.CheckPrefix(rowkey.Path("a", "b")); !errors.Is(err, rowkey.ErrInvalid) {
		t.Errorf("CheckPrefix of a whole entity = %v, want ErrInvalid", err)
	}
	if err := s.CheckPrefix(rowkey.Path("a")); err != nil {
		t.Errorf("CheckPrefix(a) = %v", err)
	}
	if _, err := rowkey.NewSpace(tenant.ID{}, "readings", fields(1), 0); !errors.Is(err, tenant.ErrInvalid) {
		t.Errorf("NewSpace without a tenant = %v, want tenant.ErrInvalid: its ranges would contain all tenants", err)
	}
	for _, name := range []string{"", ".", "..", "a#b", "a!b", "a b", strings.Repeat("d", 33), "é"} {
		if err := rowkey.CheckDataset(name); !errors.Is(err, rowkey.ErrInvalid) {
			t.Errorf("CheckDataset(%q) = %v, want ErrInvalid", name, err)
		}
	}
	for _, tt := range []struct {
		fields []string
		salts  int
	}{{nil, 0}, {make([]string, 9), 0}, {[]string{""}, 0}, {[]string{"a", "a"}, 0}, {[]string{"a"}, -1}, {[]string{"a"}, 1}, {[]string{"a"}, 101}} {
		if err := rowkey.CheckFields(tt.fields, tt.salts); !errors.Is(err, rowkey.ErrInvalid) {
			t.Errorf("CheckFields(%q, %d) = %v, want ErrInvalid", tt.fields, tt.salts, err)
		}
	}
}

func TestEncodeAllocatesNothingBeyondTheKey(t *testing.T) {
	s := space(t, "acme", "readings", 2, 16)
	path := rowkey.Path("berlin", "roof-7")
	buf := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { buf = s.AppendPoint(buf[:0], path, 1e18) }); n != 0 {
		t.Errorf("AppendPoint allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = s.CheckPath(path) }); n != 0 {
		t.Errorf("CheckPath allocates %v times", n)
	}
	key := string(buf)
	if n := testing.AllocsPerRun(100, func() { _, _, _ = s.Split(key) }); n != 0 {
		t.Errorf("Split allocates %v times", n)
	}
}

// FuzzRoundTrip checks that accepted names and parts are read back from their key, in their own tenant's space only.
func FuzzRoundTrip(f *testing.F) {
	f.Add("acme", "readings", "berlin", "roof-7", int64(1e18), uint8(0))
	f.Add("a", "r", "#", "%23", int64(0), uint8(3))
	f.Add("a", "r", "9223372036854775807", "\x00", int64(1<<63-1), uint8(100))
	f.Fuzz(func(t *testing.T, id, dataset, a, b string, units int64, salts uint8) {
		tid, err := tenant.Parse(id)
		if err != nil || rowkey.CheckDataset(dataset) != nil || rowkey.CheckFields(fields(2), int(salts)) != nil || units < 0 {
			return
		}
		s, err := rowkey.NewSpace(tid, dataset, fields(2), int(salts))
		if err != nil {
			t.Fatal(err)
		}
		path := rowkey.Path(a, b)
		valid := a != "" && b != "" && utf8.ValidString(a) && utf8.ValidString(b)
		if err := s.CheckPath(path); err != nil {
			if valid && len(path) < 3900 {
				t.Fatalf("CheckPath(%q): %v", path, err)
			}
			return
		}
		if !valid {
			t.Fatalf("CheckPath accepts %q, %q", a, b)
		}
		key := string(s.AppendPoint(nil, path, units))
		if len(key) > rowkey.MaxKey || !strings.HasPrefix(key, s.TenantPrefix()) {
			t.Fatalf("key %q", key)
		}
		gotPath, gotUnits, ok := s.Split(key)
		if !ok || gotUnits != units || !slices.Equal(rowkey.Parts(gotPath), []string{a, b}) {
			t.Fatalf("Split(%q) = %q, %d, %v", key, gotPath, gotUnits, ok)
		}
		other, _ := rowkey.NewSpace(tenant.MustParse("other-"+id[:min(len(id), 50)]), dataset, fields(2), int(salts))
		if _, _, ok := other.Split(key); ok {
			t.Fatalf("another tenant's space accepts %q", key)
		}
	})
}

// FuzzOrder checks that keys sort like tuples of parts, newest first, and that different tuples have different keys.
func FuzzOrder(f *testing.F) {
	f.Add("berlin", "roof-7", int64(2), "berlin#roof-7", "x", int64(1))
	f.Add("a", "b", int64(2), "a", "b", int64(1))
	f.Add("a%23", "b", int64(2), "a#", "b", int64(1))
	f.Fuzz(func(t *testing.T, a1, b1 string, t1 int64, a2, b2 string, t2 int64) {
		s := space(t, "acme", "r", 2, 0)
		p1, p2 := rowkey.Path(a1, b1), rowkey.Path(a2, b2)
		if s.CheckPath(p1) != nil || s.CheckPath(p2) != nil || t1 < 0 || t2 < 0 {
			return
		}
		want := cmp.Or(slices.Compare([]string{a1, b1}, []string{a2, b2}), cmp.Compare(t2, t1))
		got := strings.Compare(string(s.AppendPoint(nil, p1, t1)), string(s.AppendPoint(nil, p2, t2)))
		if got != want {
			t.Fatalf("(%q, %q, %d) and (%q, %q, %d): got order %d, want %d", a1, b1, t1, a2, b2, t2, got, want)
		}
		if e := s.Entity(p1, 0, 1<<63-1); in(e, string(s.AppendPoint(nil, p2, t2))) != (p1 == p2) {
			t.Fatalf("the range of one of %q and %q contains a key of the other", p1, p2)
		}
	})
}

// FuzzSplit checks that no bytes cause a panic, and that a key that splits is encoded to the same bytes again.
func FuzzSplit(f *testing.F) {
	f.Add("acme#readings#12#berlin#roof-7#7456146436854775807")
	f.Add("acme#readings#berlin#roof-7#7456146436854775807")
	f.Add("!format")
	f.Fuzz(func(t *testing.T, key string) {
		for _, salts := range []int{0, 16} {
			s := space(t, "acme", "readings", 2, salts)
			path, units, ok := s.Split(key)
			if !ok {
				continue
			}
			if again := string(s.AppendPoint(nil, rowkey.Path(rowkey.Parts(path)...), units)); again != key {
				t.Fatalf("Split(%q): got a point with the key %q", key, again)
			}
		}
	})
}

func BenchmarkSplit(b *testing.B) {
	s := space(b, "acme", "readings", 2, 0)
	key := string(s.AppendPoint(nil, rowkey.Path("berlin", "roof-7"), 1e18))
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = s.Split(key)
	}
}

func TestPrecision(t *testing.T) {
	date := time.Date
	for _, tt := range []struct {
		p    rowkey.Precision
		in   time.Time
		want int64
		cell int64
		err  bool
	}{
		{rowkey.Nanoseconds, time.Unix(1, 999_999_999), 1_999_999_999, 1_999_000, false},
		{rowkey.Microseconds, time.Unix(1, 999_999_999), 1_999_999, 1_999_000, false},
		{rowkey.Milliseconds, time.Unix(1, 999_999_999), 1_999, 1_999_000, false},
		{rowkey.Nanoseconds, time.Unix(0, 0), 0, 0, false},
		{rowkey.Nanoseconds, time.Unix(0, -1), 0, 0, true},
		{rowkey.Milliseconds, time.Unix(0, -1), 0, 0, true},
		{rowkey.Nanoseconds, time.Time{}, 0, 0, true},
		{rowkey.Nanoseconds, time.Unix(0, 1<<63-1), 1<<63 - 1, 9223372036854000, false},
		{rowkey.Nanoseconds, time.Unix(0, 1<<63-1).Add(1), 0, 0, true},
		{rowkey.Nanoseconds, date(2300, 1, 1, 0, 0, 0, 0, time.UTC), 0, 0, true},
		{rowkey.Microseconds, date(2300, 1, 1, 0, 0, 0, 0, time.UTC), 10413792000000000, 10413792000000000, false},
		{rowkey.Microseconds, date(300000, 1, 1, 0, 0, 0, 0, time.UTC), 0, 0, true},
		{rowkey.Milliseconds, date(300000, 1, 1, 0, 0, 0, 0, time.UTC), 0, 0, true},
	} {
		got, err := tt.p.Units(tt.in)
		if (err != nil) != tt.err || got != tt.want || err != nil && !errors.Is(err, rowkey.ErrInvalid) {
			t.Errorf("%v.Units(%v) = %d, %v; want %d, error %v", tt.p, tt.in, got, err, tt.want, tt.err)
			continue
		}
		if err == nil {
			if cell := tt.p.CellMicros(got); cell != tt.cell {
				t.Errorf("%v.CellMicros(%d) = %d, want %d", tt.p, got, cell, tt.cell)
			}
		}
	}
}

func FuzzPrecision(f *testing.F) {
	f.Add(int64(1e9), int64(5), uint8(0))
	f.Add(int64(-1), int64(999999999), uint8(1))
	f.Add(int64(9223372036), int64(854775807), uint8(0))
	f.Add(int64(9223372036854), int64(775807000), uint8(2))
	f.Fuzz(func(t *testing.T, sec, nsec int64, prec uint8) {
		p := rowkey.Precision(prec % 3)
		at := time.Unix(sec, nsec%1e9)
		units, err := p.Units(at)
		after, someAfter := p.AtOrAfter(at)
		before, someBefore := p.AtOrBefore(at)
		if err != nil {
			if someAfter && someBefore {
				t.Fatalf("%v is refused, but is between %d and %d", at, before, after)
			}
			return
		}
		back := p.Time(units)
		if back.After(at) || at.Sub(back) >= time.Millisecond || p.Max() < units {
			t.Fatalf("%v.Units(%v) = %d, which means %v", p, at, units, back)
		}
		if !someBefore || before != units || someAfter && p.Time(after).Before(at) || someAfter && after-units > 1 {
			t.Fatalf("around %v: got %d, %d", at, before, after)
		}
		if cell := time.UnixMicro(p.CellMicros(units)); cell.After(back) || back.Sub(cell) >= time.Millisecond || cell.Nanosecond()%1e6 != 0 {
			t.Fatalf("cell of %v: got time %v", back, cell)
		}
	})
}
