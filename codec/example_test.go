package codec_test

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/codec"
)

// Reading is what the examples store.
type Reading struct {
	TempC    float64 `json:"temp_c"`
	Humidity float64 `json:"humidity"`
}

func ExampleJSON() {
	readings := codec.JSON[Reading]()

	payload, err := readings.Append(nil, Reading{TempC: 21.5, Humidity: 40})
	fmt.Printf("%s %s %v\n", readings.Tag(), payload, err)

	r, err := readings.Decode(payload)
	fmt.Println(r.TempC, err)
	// Output:
	// json {"temp_c":21.5,"humidity":40} <nil>
	// 21.5 <nil>
}

func ExampleProto() {
	c := codec.Proto[*durationpb.Duration]()

	payload, err := c.Append(nil, &durationpb.Duration{Seconds: 300})
	fmt.Printf("%s %x %v\n", c.Tag(), payload, err)

	d, err := c.Decode(payload)
	fmt.Println(d.AsDuration(), err)
	// Output:
	// pb 08ac02 <nil>
	// 5m0s <nil>
}

// A dataset moves from JSON to protobuf, and from one Go type to another, without a rewrite.
func ExampleFallback() {
	type oldUptime struct {
		Seconds int64 `json:"seconds"`
	}
	fromOld := func(u oldUptime) (*durationpb.Duration, error) {
		if u.Seconds < 0 {
			return nil, errors.New("negative uptime")
		}
		return &durationpb.Duration{Seconds: u.Seconds}, nil
	}
	uptimes := codec.Fallback(
		codec.Proto[*durationpb.Duration](),
		codec.Convert(codec.JSON[oldUptime](), fromOld, nil),
	)
	fmt.Println(codec.Check(uptimes), tagsOf(uptimes))

	d, err := decodeTag(uptimes, "json", []byte(`{"seconds":300}`))
	fmt.Println(d.AsDuration(), err)

	_, err = decodeTag(uptimes, "json", []byte(`{"seconds":-1}`))
	fmt.Println(err)
	// Output:
	// <nil> [pb json]
	// 5m0s <nil>
	// codec: corrupt "json" payload of 14 bytes "{\"seconds\":-1}": negative uptime
}

// A second JSON format for a Go type: payloads with the tag "json" have the old one, with "json.v2" the new one.
func ExampleTagged() {
	type oldReading struct {
		TempF float64 `json:"temp_f"`
	}
	fromOld := func(r oldReading) (Reading, error) { return Reading{TempC: (r.TempF - 32) / 1.8}, nil }
	readings := codec.Fallback(
		codec.Tagged("json.v2", codec.JSON[Reading]()),
		codec.Convert(codec.JSON[oldReading](), fromOld, nil),
	)

	r, err := decodeTag(readings, "json", []byte(`{"temp_f":68}`))
	fmt.Println(r.TempC, err)
	r, err = decodeTag(readings, "json.v2", []byte(`{"temp_c":20}`))
	fmt.Println(r.TempC, err)
	// Output:
	// 20 <nil>
	// 20 <nil>
}

// Readers lists what a codec can read, so that a reader of many payloads looks up each tag once.
func ExampleReader() {
	decoders := map[string]func([]byte) (string, error){}
	for _, r := range codec.Readers(codec.Fallback(codec.String(), codec.JSON[string]())) {
		decoders[r.Tag] = r.Decode
	}

	fmt.Println(decoders["str"]([]byte("open")))
	fmt.Println(decoders["json"]([]byte(`"open"`)))
	// Output:
	// open <nil>
	// open <nil>
}

// The error of an unreadable payload describes the payload.
func Example_errors() {
	_, err := codec.Float64().Decode([]byte("21.5"))
	fmt.Println(errors.Is(err, codec.ErrCorrupt))
	fmt.Println(err)
	// Output:
	// true
	// codec: corrupt "f64" payload of 4 bytes "21.5": want 8 bytes
}

// A value that a format cannot hold is rejected before anything is stored.
func ExampleAppend_refused() {
	_, err := codec.Append(codec.String(), nil, "\xff")
	fmt.Println(errors.Is(err, codec.ErrEncode), err)
	// Output: true codec: value cannot be encoded as "str": not valid UTF-8
}

// A chart of one field decodes nothing else.
func ExampleLookup() {
	payload := []byte(`{"motor":{"rpm":1200,"temp_c":81.5},"name":"press-1"}`)
	for _, name := range []string{"motor.rpm", "motor.temp_c", "name", "none"} {
		v, err := codec.Lookup("json", payload, name)
		x, ok := v.Number()
		fmt.Println(v, x, ok, err)
	}
	// Output:
	// 1200i 1200 true <nil>
	// 81.5 81.5 true <nil>
	// "press-1" 0 false <nil>
	// invalid 0 false <nil>
}

// Senders write one number in several ways. Text and AsNumber return the same for all of them.
func ExampleValue_AsNumber() {
	for _, v := range []codec.Value{codec.Int(7), codec.Uint(7), codec.Float(7), codec.Str("7"), codec.Str("7e0"), codec.Bool(true)} {
		text, _ := v.Text()
		x, _ := v.AsNumber().Number()
		fmt.Println(v, text, x)
	}
	// Output:
	// 7i 7 7
	// 7u 7 7
	// 7 7 7
	// "7" 7 7
	// "7e0" 7e0 7
	// true true 1
}

// decodeTag decodes a payload with a tag, as a store does.
func decodeTag[T any](c codec.Codec[T], tag string, src []byte) (v T, err error) {
	for _, r := range codec.Readers(c) {
		if r.Tag == tag {
			return r.Decode(src)
		}
	}
	return v, codec.ErrUnknownTag
}
