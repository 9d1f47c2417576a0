package inbound

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// one returns the event of a payload, or the error for which it is refused for good.
func (r *Route) one(t *testing.T, ds *Datasets, topic, payload string) (Event, error) {
	t.Helper()
	names, ok := r.pattern.match(topic)
	if !ok {
		t.Fatalf("the topic %q does not match the route", topic)
	}
	events, err := r.Events(t.Context(), ds, acme, Message{Names: names, Payload: []byte(payload), Arrived: time.Unix(1767225600, 0)})
	if err == nil {
		return events[0], nil
	}
	if _, final := errors.AsType[*Error](err); !final {
		t.Fatalf("%s: %v, want an event or a final error", payload, err)
	}
	return Event{}, err
}

// route returns a route, and the datasets that it needs on a store.
func route(t *testing.T, store *tsdb.Store, line string) (*Route, *Datasets) {
	t.Helper()
	rs, err := ParseRoutes(strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := rs.Schemas(tsdb.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ds, err := NewDatasets(t.Context(), store, rs.Keys(), Options{Schemas: schemas})
	if err != nil {
		t.Fatal(err)
	}
	return rs.all[0], ds
}

// TestEventWithoutItsNumber: an event that lacks a number of sum= is refused, and its identity is not remembered. So
// the corrected event counts, and the count and the sum are of the same events.
func TestEventWithoutItsNumber(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	r, ds := route(t, store, "v/+tenant/+device dataset=views key=device time=at,s count=1h id=message_id sum=bytes,ms")
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(t.Context())
	sink := Sink{Store: store, Writer: w}
	for i, test := range []struct {
		fields string
		fault  string // the field that the error names; empty if the event counts
	}{
		{`"ms":1`, "bytes"},
		{`"bytes":null,"ms":1`, "bytes"},
		{`"bytes":"many","ms":1`, "bytes"},
		{`"bytes":"","ms":1`, "bytes"},
		{`"bytes":"NaN","ms":1`, "bytes"},
		{`"bytes":7`, "ms"},
		{`"bytes":7,"ms":"-"`, "ms"},
		{`"bytes":7,"ms":null`, "ms"},
		{`"bytes":7,"ms":1`, ""},
		{`"bytes":"7","ms":"1"`, ""},
		{`"bytes":7.5,"ms":1e0`, ""},
	} {
		payload := fmt.Sprintf(`{"at":1767225600,"message_id":"m%d",%s}`, i, test.fields)
		e, err := r.one(t, ds, "v/acme/t1", payload)
		if test.fault != "" {
			if err == nil || !strings.Contains(err.Error(), `"`+test.fault+`"`) {
				t.Errorf("%s: %v, want that it is refused, with the field %q", payload, err, test.fault)
			}
			payload = fmt.Sprintf(`{"at":1767225600,"message_id":"m%d","bytes":7,"ms":1}`, i) // corrected
			if e, err = r.one(t, ds, "v/acme/t1", payload); err != nil {
				t.Fatal(err)
			}
		} else if err != nil {
			t.Errorf("%s is refused: %v", payload, err)
			continue
		}
		if out := sink.Count(t.Context(), acme, r, e); out.Err != nil || out.State != tsdb.Stored {
			t.Errorf("%s: %+v, want that it is counted", payload, out)
		}
	}
	// A number that is too large for a sum is refused by the rollup, and not remembered either.
	for _, bytes := range []string{"2e12", "7"} {
		e, err := r.one(t, ds, "v/acme/t1", `{"at":1767225600,"message_id":"large","ms":1,"bytes":`+bytes+`}`)
		if err != nil {
			t.Fatal(err)
		}
		out := sink.Count(t.Context(), acme, r, e)
		if _, refused := errors.AsType[*Error](out.Err); refused != (bytes == "2e12") {
			t.Errorf("%s bytes: %+v, want that only 2e12 is refused", bytes, out)
		}
	}
	d := ds.finds(t, acme, "views")
	from := time.Unix(1767225600, 0)
	b, err := rollup.For(r.counts, d.schema.For(store, acme)).Total(t.Context(), tsdb.NewEntity("t1"), tsdb.Between(from.Truncate(time.Hour), from.Add(time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	if b.Points != 12 || b.Values[0].Sum != 11*7+7.5 || b.Values[1].Sum != 12 || b.Values[0].Count != 12 {
		t.Errorf("%d events with %d numbers, %v bytes and %v ms; want 12 with 12 numbers, 84.5 bytes and 12 ms", b.Points, b.Values[0].Count, b.Values[0].Sum, b.Values[1].Sum)
	}
}

// TestNumbersInKeysAndIDs: however a JSON sender writes a number, it is the same part of a key and the same identity.
// Whole numbers are exact.
func TestNumbersInKeysAndIDs(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	r, ds := route(t, store, "v/+tenant dataset=views key=device time=at,s count=1h id=message_id")
	for text, same := range map[string][]string{
		"7":                     {"7", "7.0", "7e0", "70e-1", "0.7E+1", "7.000", `"7"`},
		"0":                     {"0", "-0", "0.0", "-0.0", "0e5", "0e99999999999"},
		"-12":                   {"-12", "-12.0", "-1.2e1"},
		"0.1":                   {"0.1", "1e-1", "0.10", "100e-3"},
		"1500":                  {"1500", "1.5e3"},
		"9007199254740993":      {"9007199254740993", "9007199254740993.0", "9.007199254740993e15", "9007199254740993e0"},
		"9007199254740995":      {"9007199254740995"},
		"18446744073709551615":  {"18446744073709551615", "18446744073709551615.0"},
		"-9223372036854775808":  {"-9223372036854775808", "-9223372036854775808.0"},
		"100000000000000000000": {"100000000000000000000", "1e20", "100000000000000000000.0"},
		"1700000000000":         {"1.7e12", "1700000000000"},
		"true":                  {"true"},
		"1e3":                   {`"1e3"`}, // text is as it is
	} {
		for _, number := range same {
			e, err := r.one(t, ds, "v/acme", `{"device":`+number+`,"message_id":`+number+`,"at":1767225600}`)
			if err != nil {
				t.Errorf("%s: %v", number, err)
				continue
			}
			if got := e.Entity.Parts()[0]; got != text || e.ID != text {
				t.Errorf("%s: the key %q and the identity %q; want %q, or one device is two and one message counts twice", number, got, e.ID, text)
			}
		}
	}
	for _, none := range []string{"null", "[]", "{}", "1e400", "-1e999999999999999999999"} {
		if e, err := r.one(t, ds, "v/acme", `{"device":"d","message_id":`+none+`,"at":1767225600}`); err == nil {
			t.Errorf("an event with the identity %s is accepted, as %q", none, e.ID)
		}
		if e, err := r.one(t, ds, "v/acme", `{"device":`+none+`,"message_id":"m","at":1767225600}`); err == nil {
			t.Errorf("a key of %s is accepted, as %v", none, e.Entity)
		}
	}
}

// TestNumberInTopicAndPayload: a payload may repeat what its topic says, in any form of the number.
func TestNumberInTopicAndPayload(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	r, ds := route(t, store, "v/+tenant/+device dataset=d key=device time=at,s merge")
	for number, same := range map[string]bool{"7": true, "7.0": true, "7e0": true, `"7"`: true, "7.5": false, `"7.0"`: false, "true": false} {
		_, err := r.one(t, ds, "v/acme/7", `{"device":`+number+`,"x":1,"at":1767225600}`)
		if (err == nil) != same {
			t.Errorf("device %s in the payload and 7 in the topic: %v, want that they are the same: %v", number, err, same)
		}
	}
}

// TestNumbersOfPayloads: numbers are stored with all their digits, and decimal text is a number where the route says
// so.
func TestNumbersOfPayloads(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	r, ds := route(t, store, "v/+tenant/+device dataset=d key=device time=at,s merge number=n,of.n")
	for _, test := range []struct {
		json      string
		elsewhere codec.Value // in another field
		number    codec.Value // in a field of number=; the zero Value if it is refused
	}{
		{"9007199254740993", codec.Int(9007199254740993), codec.Int(9007199254740993)},
		{"-9223372036854775808", codec.Int(-9223372036854775808), codec.Int(-9223372036854775808)},
		{"18446744073709551615", codec.Uint(18446744073709551615), codec.Uint(18446744073709551615)},
		{"100000000000000000000", codec.Float(1e20), codec.Float(1e20)},
		{"-100000000000000000000", codec.Float(-1e20), codec.Float(-1e20)},
		{"7.0", codec.Float(7), codec.Float(7)},
		{"1.7e12", codec.Float(1.7e12), codec.Float(1.7e12)},
		{`"9007199254740993"`, codec.Str("9007199254740993"), codec.Int(9007199254740993)},
		{`"18446744073709551615"`, codec.Str("18446744073709551615"), codec.Uint(18446744073709551615)},
		{`"21.50"`, codec.Str("21.50"), codec.Float(21.5)},
		{`"-1e3"`, codec.Str("-1e3"), codec.Float(-1000)},
		{`"n/a"`, codec.Str("n/a"), codec.Value{}},
		{`""`, codec.Str(""), codec.Value{}},
		{`"NaN"`, codec.Str("NaN"), codec.Value{}},
		{`"Infinity"`, codec.Str("Infinity"), codec.Value{}},
		{`"0x10"`, codec.Str("0x10"), codec.Value{}},
		{`"1_000"`, codec.Str("1_000"), codec.Value{}},
	} {
		e, err := r.one(t, ds, "v/acme/t1", `{"at":1767225600,"x":`+test.json+`}`)
		if err != nil {
			t.Errorf("%s: %v", test.json, err)
			continue
		}
		if got, _ := e.Record.Lookup("x"); got != test.elsewhere {
			t.Errorf("%s is stored as %v, want %v", test.json, got, test.elsewhere)
		}
		for name, fields := range map[string]string{"n": `"n":%s`, "of.n": `"of":{"n":%s}`} {
			e, err := r.one(t, ds, "v/acme/t1", `{"at":1767225600,`+fmt.Sprintf(fields, test.json)+`}`)
			got, _ := e.Record.Lookup(name)
			if got != test.number {
				t.Errorf("%s in number=%s is stored as %v, %v; want %v", test.json, name, got, err, test.number)
			}
			if err != nil && !strings.Contains(err.Error(), `"`+name+`"`) {
				t.Errorf("%s is refused with %q, which does not name the field %s", test.json, err, name)
			}
		}
	}
	e, err := r.one(t, ds, "v/acme/t1", `{"at":1767225600,"n":null,"of":null,"x":null,"y":1}`)
	if err != nil || e.Record.Len() != 1 {
		t.Errorf("null is stored as %v, %v; want only y", e.Record, err)
	}
}

// TestTimesOfPayloads: a time is a number in any form that JSON has.
func TestTimesOfPayloads(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	r, ds := route(t, store, "v/+tenant/+device dataset=d key=device time=at,ms merge")
	for text, want := range map[string]int64{
		"1767225600000": 1767225600000, "1767225600000.0": 1767225600000, "1.7672256e12": 1767225600000, "17672256e5": 1767225600000,
		`"1767225600000"`: 1767225600000, `"1.7672256e12"`: 1767225600000, `"2026-01-01T00:00:00Z"`: 1767225600000, "1.7e12": 1700000000000,
	} {
		e, err := r.one(t, ds, "v/acme/t1", `{"at":`+text+`,"x":1}`)
		if err != nil || e.Time.UnixMilli() != want || e.Time.Nanosecond()%1e6 != 0 {
			t.Errorf("the time %s is %v, %v; want %d ms", text, e.Time, err, want)
		}
	}
}

// TestSameFieldIsNamed: a message that is refused for several of its fields names the same one each time.
func TestSameFieldIsNamed(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	r, ds := route(t, store, "v/+tenant/+device dataset=d key=device time=at,s merge strict")
	bad := make([]string, 26)
	for i := range bad {
		bad[i] = fmt.Sprintf(`"%c":[]`, 'a'+i)
	}
	for payload, want := range map[string]string{
		`{"at":1,` + strings.Join(bad, ",") + `}`:                        `"a"`,
		`{"at":1,"o":{` + strings.Join(bad, ",") + `},"z":[]}`:           `"o.a"`,
		`{"at":1,"b":{"x":1},"b.x":2,"a":{"x":1},"a.x":2,"c":1e400}`:     `"a.x"`,
		`{"at":1,"f":1e400,"e":1e500,"d":1e600,"g":-1e700,"x":-1e99999}`: `"d"`,
	} {
		for range 50 {
			_, err := r.one(t, ds, "v/acme/t1", payload)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want an error that names %s each time", payload, err, want)
				break
			}
		}
	}
}
