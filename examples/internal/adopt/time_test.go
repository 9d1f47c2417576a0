package adopt

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// TestTimesKeepTheirText checks for random times that each text is read as a time that has this text.
func TestTimesKeepTheirText(t *testing.T) {
	formats := []timeFormat{
		{unit: 1e9, width: 10},
		{unit: 1e6, width: 13},
		{unit: 1e3, width: 16},
		{unit: 1, width: 19},
		{unit: 1e6, width: 19, max: math.MaxInt64},
		{unit: 1e9, width: 10, max: 9_999_999_999},
		{unit: 1, width: 20, max: math.MaxUint64},
		{encoding: bigEndianTime, unit: 1e3, width: 8},
		{encoding: bigEndianTime, unit: 1e6, width: 8, max: math.MaxUint64},
		{encoding: rfc3339Time, unit: 1, width: 20},
		{encoding: rfc3339Time, unit: 1, width: 24},
		{encoding: rfc3339Time, unit: 1, width: 30},
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range formats {
		for p := f.precision(); ; p-- { // also finer ones
			for range 300 {
				at := rowkey.Nanoseconds.Time(1_700_000_000_000_000_000 + r.Int64N(5)*1e9 + r.Int64N(3)*1e6 + r.Int64N(3)*1e3 + r.Int64N(3))
				units, err := p.Units(at)
				if err != nil {
					t.Fatal(err)
				}
				text := f.spell(units, p)
				got, problem := f.parse(text, p)
				if problem != "" || f.spell(got, p) != text {
					t.Fatalf("%+v: %q is read as %d, %s", f, text, got, problem)
				}
			}
			if p == rowkey.Nanoseconds {
				break
			}
		}
	}
}

// TestTimesEndWithTheYear9999: a copy takes over no time that other writes refuse, in whatever form it is.
func TestTimesEndWithTheYear9999(t *testing.T) {
	const lastSecond = 253402300799
	for name, tt := range map[string]struct {
		format       timeFormat
		last, beyond string
		precision    rowkey.Precision
	}{
		"seconds":               {timeFormat{unit: 1e9}, "253402300799", "253402300800", rowkey.Milliseconds},
		"seconds of one width":  {timeFormat{unit: 1e9, width: 12}, "253402300799", "253402300800", rowkey.Microseconds},
		"milliseconds":          {timeFormat{unit: 1e6}, "253402300799999", "253402300800000", rowkey.Milliseconds},
		"milliseconds, finer":   {timeFormat{unit: 1e6}, "253402300799999", "1767225600000000", rowkey.Microseconds},
		"microseconds":          {timeFormat{unit: 1e3, width: 18}, "253402300799999999", "253402300800000000", rowkey.Microseconds},
		"reversed milliseconds": {timeFormat{unit: 1e6, width: 16, max: 9_999_999_999_999_999}, "9746597699200000", "9746597699199999", rowkey.Milliseconds},
		"bytes":                 {timeFormat{encoding: bigEndianTime, unit: 1e9, width: 8}, "\x00\x00\x00\x3a\xff\xf4\x41\x7f", "\x00\x00\x00\x3a\xff\xf4\x41\x80", rowkey.Milliseconds},
		"text":                  {timeFormat{encoding: rfc3339Time, unit: 1, width: 20}, "9999-12-31T23:59:59Z", "10000-01-01T00:00:00Z", rowkey.Milliseconds},
	} {
		units, problem := tt.format.parse(tt.last, tt.precision)
		if problem != "" || tt.precision.Time(units).Unix() != lastSecond {
			t.Errorf("%s: %q is read as %v, %s; want the last time of the year 9999", name, tt.last, tt.precision.Time(units), problem)
		}
		if units, problem := tt.format.parse(tt.beyond, tt.precision); problem == "" {
			t.Errorf("%s: %q is taken over as %v", name, tt.beyond, tt.precision.Time(units))
		}
	}
}

// spell returns the key of a time, rounded down to the format's unit.
func (f timeFormat) spell(units int64, p rowkey.Precision) string {
	if f.encoding == rfc3339Time {
		return f.text(p.Time(units))
	}
	n := uint64(p.Time(units).UnixNano() / f.unit)
	if f.max > 0 {
		n = f.max - n
	}
	return f.number(n)
}

// TestPace checks that a copy keeps to its rate.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace{rate: 100}
		began := time.Now()
		for range 11 {
			if err := p.wait(t.Context(), 50); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("500 points at 100 a second took %s, want 5s before the next", took)
		}
	})
}

// TestValues checks what each encoding takes, and that it takes nothing that it would change.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		as          encoding
		value, want string // want is empty for what is refused
	}{
		{asNumber, "21.5", "21.5"},
		{asNumber, "-1e3", "-1000"},
		{asNumber, "9007199254740993", ""},
		{asNumber, "9007199254740992", "9.007199254740992e+15"},
		{asNumber, "NaN", ""},
		{asNumber, "0x1p4", ""},
		{asNumber, "", ""},
		{asNumber, "1e999", ""},
		{asInteger, "9007199254740993", "9007199254740993i"},
		{asInteger, "1.0", ""},
		{asInteger, "9223372036854775808", ""},
		{asInt64, "\xff\xff\xff\xff\xff\xff\xff\xfe", "-2i"},
		{asInt64, "1", ""},
		{asFloat64, "\x40\x35\x80\x00\x00\x00\x00\x00", "21.5"},
		{asFloat64, "21.5", ""},
		{asText, "door", "door"},
		{asText, "\xff", ""},
		{asBool, "true", "true"},
		{asBool, "\x00", "false"},
		{asBool, "yes", ""},
		{asBytes, "\xff", "/w=="},
	} {
		got, err := c.as.value([]byte(c.value))
		if text := got.String(); (err != nil) != (c.want == "") || err == nil && text != c.want && text != `"`+c.want+`"` {
			t.Errorf("%s of %q = %s, %v; want %s", encodings[c.as], c.value, text, err, c.want)
		}
	}
	m := &Mapping{columns: []column{{key: "a:b", as: asJSON}, {name: "n", key: "a:c", as: asText}}}
	for text, want := range map[string]bool{`{"a":1,"b":{"c":"x","d":null}}`: true, `{"a":[1]}`: false, `[1]`: false, `1`: false, `{"n":1}`: false, `{"a":1}x`: false} {
		_, err := m.payload([]cell{{0, []byte(text)}, {1, []byte("x")}})
		if (err == nil) != want {
			t.Errorf("the fields of %s: %v, want taken: %v", text, err, want)
		}
	}
}

func (f timeFormat) number(n uint64) string {
	if f.encoding == bigEndianTime {
		return string(binary.BigEndian.AppendUint64(nil, n))
	}
	return fmt.Sprintf("%0*d", f.width, n)
}
