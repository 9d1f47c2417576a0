package codec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/codecerr"
)

// benchmark measures both directions of a codec. Next to JSON and Proto it measures the library alone.
func benchmark[T any](
	b *testing.B, c codec.Codec[T], v T, marshal func(T) ([]byte, error), unmarshal func([]byte) error,
) {
	b.Helper()
	payload, err := c.Append(nil, v)
	if err != nil {
		b.Fatal(err)
	}
	decode := codec.Readers(c)[0].Decode
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	if marshal != nil {
		run("append/raw", func() error { _, err := marshal(v); return err })
	}
	run("append/codec", func() error { _, err := codec.Append(c, nil, v); return err })
	if unmarshal != nil {
		run("decode/raw", func() error { return unmarshal(payload) })
	}
	run("decode/codec", func() error { _, err := decode(payload); return err })
}

func BenchmarkJSON(b *testing.B) {
	benchmark(b, codec.JSON[reading](), reading{TempC: 21.5, Humidity: 40},
		func(r reading) ([]byte, error) { return json.Marshal(r) },
		func(src []byte) error { var r reading; return json.Unmarshal(src, &r) })
}

func BenchmarkProto(b *testing.B) {
	benchmark(b, codec.Proto[*durationpb.Duration](), &durationpb.Duration{Seconds: 300, Nanos: 7},
		func(m *durationpb.Duration) ([]byte, error) { return proto.Marshal(m) },
		func(src []byte) error { return proto.Unmarshal(src, new(durationpb.Duration)) })
}

func BenchmarkRecords(b *testing.B) {
	benchmark(b, codec.Records(), codec.NewRecord(
		field("humidity", codec.Int(40)), field("state", codec.Str("open")), field("temp_c", codec.Float(21.5)),
	), nil, nil)
}

func BenchmarkFloat64(b *testing.B) { benchmark(b, codec.Float64(), 21.5, nil, nil) }

func BenchmarkMerge(b *testing.B) {
	old := codec.NewRecord(field("humidity", codec.Int(40)), field("temp_c", codec.Float(21.5)))
	newer := codec.NewRecord(field("state", codec.Str("open")), field("temp_c", codec.Float(22)))
	b.ReportAllocs()
	for b.Loop() {
		old.Merge(newer)
	}
}

// TestAllocations checks the documented cost. JSON is left out: encoding/json reuses memory as it likes.
func TestAllocations(t *testing.T) {
	buf := make([]byte, 0, 256)
	record := codec.NewRecord(field("humidity", codec.Int(40)), field("state", codec.Str("open")))
	wide := codec.NewRecord(
		field("a", codec.Int(-1<<63)), field("b", codec.Uint(1<<64-1)), field("c", codec.Float(1)),
		field("d", codec.Str(strings.Repeat("d", 300))), field("e", codec.Bool(true)), field("f", codec.Int(1<<62)),
	)
	payload, err := codec.Records().Append(nil, record)
	if err != nil {
		t.Fatal(err)
	}
	decode := codec.Readers(codec.Records())[0].Decode
	floats, records, message := codec.Float64(), codec.Records(), codec.Proto[*durationpb.Duration]()
	fallback := codec.Fallback(records, codec.JSON[codec.Record]())
	duration := &durationpb.Duration{Seconds: 300}
	for _, tt := range []struct {
		name string
		want float64
		do   func()
	}{
		{"CheckTag", 0, func() { _ = codecerr.CheckTag("json+zstd") }},
		{"Float64 Append", 0, func() { _, _ = codec.Append(floats, buf, 1.5) }},
		{"Float64 Decode", 0, func() { _, _ = floats.Decode(payload[:8]) }},
		{"Proto Append", 0, func() { _, _ = message.Append(buf, duration) }},
		{"Records Append", 0, func() { _, _ = records.Append(buf, record) }},
		{"Records Append to nothing", 1, func() { _, _ = records.Append(nil, wide) }},
		{"Fallback Append", 0, func() { _, _ = codec.Append(fallback, buf, record) }},
		{"Records Decode", 2, func() { _, _ = decode(payload) }},
		{"NewRecord", 1, func() { codec.NewRecord(field("b", codec.Int(1)), field("a", codec.Int(1))) }},
		{"Merge", 1, func() { record.Merge(record) }},
		{"Lookup", 0, func() { record.Lookup("state") }},
		{"All", 0, func() {
			for range record.All() {
			}
		}},
	} {
		if got := testing.AllocsPerRun(100, tt.do); got > tt.want {
			t.Errorf("%s allocates %v times, want %v", tt.name, got, tt.want)
		}
	}
}
