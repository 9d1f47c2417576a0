package codec_test

import (
	"fmt"

	"github.com/tidemark-go/tidemark/codec"
)

// Fields that are only known at run time keep their types in the store.
func ExampleRecord() {
	r := codec.NewRecord(
		codec.Field{Name: "temp", Value: codec.Float(21)},
		codec.Field{Name: "door", Value: codec.Str("open")},
		codec.Field{Name: "pulses", Value: codec.Uint(1<<64 - 1)},
	)
	payload, err := codec.Records().Append(nil, r)
	if err != nil {
		fmt.Println(err)
		return
	}
	back, err := codec.Records().Decode(payload)
	if err != nil {
		fmt.Println(err)
		return
	}
	for name, v := range back.All() {
		fmt.Println(name, v.Kind(), v)
	}
	fmt.Println(back.Equal(r))
	// Output:
	// door str "open"
	// pulses uint 18446744073709551615u
	// temp float 21
	// true
}

// Two lines about the same series and time become one record; the newer value of a field counts.
func ExampleRecord_Merge() {
	first := codec.NewRecord(
		codec.Field{Name: "temp", Value: codec.Float(21)},
		codec.Field{Name: "door", Value: codec.Str("open")},
	)
	second := codec.Record{}.With("temp", codec.Float(21.5)).With("lux", codec.Int(300))

	fmt.Println(first.Merge(second))
	// Output:
	// {door="open" lux=300i temp=21.5}
}

// A program that makes many records reuses a slice of fields.
func ExampleField() {
	var fields []codec.Field
	for i, name := range []string{"b", "a"} {
		fields = append(fields, codec.Field{Name: name, Value: codec.Int(int64(i))})
	}
	r := codec.NewRecord(fields...)
	fields = fields[:0]

	fmt.Println(r, len(fields))
	// Output:
	// {a=1i b=0i} 0
}

func ExampleValue() {
	v := codec.Int(40)

	fmt.Println(v.Int())
	fmt.Println(v.Float())
	fmt.Println(v.Number())
	fmt.Println(v == codec.Int(40), v == codec.Uint(40))
	// Output:
	// 40 true
	// 0 false
	// 40 true
	// true false
}

func ExampleKind() {
	sum := 0.0
	for _, v := range []codec.Value{codec.Float(1.5), codec.Uint(2), codec.Str("three"), {}} {
		switch v.Kind() {
		case codec.KindFloat, codec.KindInt, codec.KindUint:
			n, _ := v.Number()
			sum += n
		default:
			fmt.Println("skipped", v.Kind())
		}
	}
	fmt.Println(sum)
	// Output:
	// skipped str
	// skipped invalid
	// 3.5
}
