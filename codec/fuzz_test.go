package codec_test

import (
	"math"
	"testing"

	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/codecerr"
)

type nested struct {
	Name  string             `json:"name"`
	Tags  map[string]string  `json:"tags,omitempty"`
	More  []*nested          `json:"more,omitempty"`
	Byte  []byte             `json:"byte,omitempty"`
	Any   any                `json:"any,omitempty"`
	Float float64            `json:"float"`
	Sums  map[int64][2]int32 `json:"sums,omitempty"`
}

func FuzzJSONDecode(f *testing.F) {
	f.Add([]byte(`{"name":"a\u003c","tags":{"b":"c"},"more":[null,{}],"byte":"aGk=","any":[1e3,true],"sums":{"-1":[1,2]}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, src []byte) {
		stable(t, codec.JSON[nested](), src)
		stable(t, codec.JSON[any](), src)
	})
}

func FuzzProtoDecode(f *testing.F) {
	f.Add([]byte("\x0a\x03abc\x22\x05\x0a\x03Msg"))
	f.Fuzz(func(t *testing.T, src []byte) {
		stable(t, codec.Proto[*descriptorpb.FileDescriptorProto](), src)
		stable(t, codec.Proto[*structpb.Struct](), src)
	})
}

func FuzzPlainDecode(f *testing.F) {
	f.Add([]byte("12345678"))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, src []byte) {
		stable(t, codec.Bytes(), src)
		stable(t, codec.String(), src)
		stable(t, codec.Float64(), src)
		stable(t, codec.Int64(), src)
		stable(t, codec.Fallback(codec.Tagged("a", codec.String()), codec.JSON[string]()), src)
		stable(t, codec.Convert(codec.Int64(), toText, fromText), src)
	})
}

func FuzzRecordDecode(f *testing.F) {
	f.Add([]byte("\x03\x01ni\x05\x02okT\x04tempf\x40\x35\x80\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x02\x01as\x02hi\x01bu\xff\x01"))
	f.Fuzz(func(t *testing.T, src []byte) {
		stable(t, codec.Records(), src)
		r, err := codec.Records().Decode(src)
		if err != nil {
			return
		}
		got, err := codec.Records().Append(nil, r)
		if err != nil || string(got) != string(src) {
			t.Fatalf("%q is read as %v, which is written as %q, %v: a record must have one encoding", src, r, got, err)
		}
	})
}

func FuzzRecordJSON(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":1.0,"c":"x","d":true,"e":-1e-3}`))
	f.Fuzz(func(t *testing.T, src []byte) { stable(t, codec.JSON[codec.Record](), src) })
}

func FuzzRecordRoundTrip(f *testing.F) {
	f.Add("temp", "state", 21.5, int64(math.MinInt64), uint64(math.MaxUint64), "open", true)
	f.Fuzz(func(t *testing.T, n1, n2 string, x float64, i int64, u uint64, s string, b bool) {
		r := codec.NewRecord(
			codec.Field{Name: n1, Value: codec.Float(x)}, codec.Field{Name: n2, Value: codec.Int(i)},
			codec.Field{Name: n1 + n2, Value: codec.Uint(u)}, codec.Field{Name: n2 + n1, Value: codec.Str(s)},
			codec.Field{Name: n1 + n1, Value: codec.Bool(b)},
		)
		payload, err := codec.Append(codec.Records(), nil, r)
		if err != nil {
			return // a name or a text that cannot be stored
		}
		if got, err := codec.Records().Decode(payload); err != nil || !got.Equal(r) {
			t.Fatalf("wrote %v and read %v, %v", r, got, err)
		}
	})
}

func FuzzCheckTag(f *testing.F) {
	f.Add("json+zstd")
	f.Fuzz(func(t *testing.T, tag string) {
		if codecerr.CheckTag(tag) != nil {
			return
		}
		for _, c := range []byte(tag) {
			if c < '+' || c > 'z' || c == ':' {
				t.Fatalf("CheckTag(%q) = nil, but it does not fit into a column's name", tag)
			}
		}
	})
}
