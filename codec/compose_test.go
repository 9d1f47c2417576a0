package codec_test

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/codecerr"
)

func wantInvalid(t *testing.T, err error, part string) {
	t.Helper()
	if !errors.Is(err, codecerr.ErrInvalid) || !strings.Contains(err.Error(), part) {
		t.Errorf("Check = %v, want ErrInvalid about %q", err, part)
	}
}

func TestCheckTag(t *testing.T) {
	for _, tag := range []string{
		"json", "f64", "json+zstd", "json.v2", "a", "0", "acme-reading.v2+zstd", strings.Repeat("a", 24),
	} {
		if err := codecerr.CheckTag(tag); err != nil {
			t.Errorf("CheckTag(%q) = %v, want nil", tag, err)
		}
	}
	for _, tag := range []string{
		"", "JSON", "js on", "json:", "a#b", "+json", "json+", "json++zstd", ".", "ä", "a\x00", strings.Repeat("a", 25),
	} {
		if err := codecerr.CheckTag(tag); !errors.Is(err, codecerr.ErrInvalid) {
			t.Errorf("CheckTag(%q) = %v, want ErrInvalid", tag, err)
		}
	}
}

// plain is a codec that a user may have built wrongly.
type plain struct {
	tag     string
	readers []codec.Reader[string]
}

func (p plain) Tag() string                     { return p.tag }
func (p plain) Readers() []codec.Reader[string] { return slices.Clone(p.readers) }
func (p plain) Decode([]byte) (string, error)   { return "half", io.ErrUnexpectedEOF }
func (p plain) Append(dst []byte, s string) ([]byte, error) {
	if s == "" {
		return nil, io.ErrShortWrite
	}
	return []byte(s), nil
}

func TestCheck(t *testing.T) {
	decode, own := codec.String().Decode, codec.Tagged("str", codec.JSON[string]())
	for _, tt := range []struct {
		name string
		c    codec.Codec[string]
		part string
	}{
		{"nil", nil, "codec is nil"},
		{"bad tag", plain{"A", []codec.Reader[string]{{Tag: "A", Decode: decode}}}, `tag is "A"`},
		{"no readers", plain{"a", nil}, "readers is 0"},
		{"other first", plain{"a", []codec.Reader[string]{{Tag: "b", Decode: decode}, {Tag: "a", Decode: decode}}}, "readers is 2"},
		{"no function", plain{"a", []codec.Reader[string]{{Tag: "a", Decode: nil}}}, "reader 0 is nil"},
		{"twice", plain{"a", []codec.Reader[string]{{Tag: "a", Decode: decode}, {Tag: "a", Decode: decode}}}, `tag is "a"`},
		{"fallback of nil", codec.Fallback[string](nil), "codec is nil"},
		{"fallback to nil", codec.Fallback(codec.String(), nil), "codec is nil"},
		{"fallback twice", codec.Fallback(codec.String(), codec.String()), `tag is "str"`},
		{"fallback within", codec.Fallback(codec.String(), codec.Fallback(codec.JSON[string](), own)), `tag is "str"`},
		{"fallback to a bad one", codec.Fallback(codec.String(), codec.Tagged("", codec.JSON[string]())), "tag is empty"},
		{"tagged badly", codec.Tagged("a b", codec.String()), `tag is "a b"`},
		{"tagged nil", codec.Tagged[string]("a", nil), "codec is nil"},
		{"tagged many", codec.Tagged("a", codec.Fallback(codec.String(), codec.JSON[string]())), "a reader of 2 tags"},
		{"tagged bad", codec.Tagged("a", codec.Tagged("", codec.String())), "tag is empty"},
		{"convert nil", codec.Convert[int, string](nil, nil, nil), "codec is nil"},
		{"convert without forth", codec.Convert[int64, string](codec.Int64(), nil, nil), "forth is nil"},
		{"convert of bad", codec.Convert(codec.Tagged("", codec.Int64()), toText, fromText), "tag is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantInvalid(t, codec.Check(tt.c), tt.part)
			if tt.c == nil || strings.HasPrefix(tt.part, "reader") {
				return
			}
			tagsOf(tt.c) // nor may an invalid codec panic
			_, _ = tt.c.Append(nil, "x")
			_, _ = tt.c.Decode([]byte("x"))
			_, _ = decodeTag(tt.c, tt.c.Tag(), []byte("x"))
		})
	}
}

// TestBadCodecsRefuseEachCall is for programs that use a codec without a schema, and so without Check.
func TestBadCodecsRefuseEachCall(t *testing.T) {
	for name, c := range map[string]codec.Codec[string]{
		"Fallback": codec.Fallback(codec.String(), codec.String()),
		"Tagged":   codec.Tagged("a b", codec.String()),
		"Convert":  codec.Convert[int64, string](codec.Int64(), nil, fromText),
	} {
		out, err := c.Append(nil, "1")
		if out != nil || !errors.Is(err, codecerr.ErrInvalid) || !errors.Is(err, codec.ErrEncode) {
			t.Errorf("%s: Append = %q, %v, want ErrInvalid", name, out, err)
		}
		if _, err := c.Decode([]byte("1")); !errors.Is(err, codecerr.ErrInvalid) {
			t.Errorf("%s: Decode = %v, want ErrInvalid", name, err)
		}
	}
}

func TestErrorsOfForeignCodecs(t *testing.T) {
	c := plain{"own", []codec.Reader[string]{{Tag: "own", Decode: plain{}.Decode}}}
	got, err := decodeTag(c, "own", []byte("xyz"))
	wantCorrupt(t, err, "own", "xyz")
	if got != "" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Decode = %q, %v, want no value and the cause", got, err)
	}
	out, err := codec.Append(c, nil, "")
	wantEncode(t, out, err, "own", io.ErrShortWrite.Error())
	if out, err := codec.Append(c, []byte("head"), "x"); string(out) != "head" || !errors.Is(err, codec.ErrEncode) {
		t.Errorf("Append of a codec that forgets dst = %q, %v, want an error", out, err)
	}
}

func TestCorruptErrorIsBounded(t *testing.T) {
	_, err := codec.Float64().Decode([]byte(strings.Repeat("\xff", 1<<20)))
	if len(err.Error()) > 300 || !strings.Contains(err.Error(), `"f64" payload of 1048576 bytes "\xff`) {
		t.Errorf("message of %d bytes: %v", len(err.Error()), err)
	}
}

func toText(n int64) (string, error) {
	if n < 0 {
		return "", strconv.ErrRange
	}
	return strconv.FormatInt(n, 10), nil
}

func fromText(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }

func TestFallback(t *testing.T) {
	c := codec.Fallback(codec.String(), codec.JSON[string](), codec.Convert(codec.Int64(), toText, nil))
	if err := codec.Check(c); err != nil {
		t.Fatal(err)
	}
	if got, want := tagsOf(c), []string{"str", "json", "i64"}; !slices.Equal(got, want) {
		t.Errorf("Tags = %q, want %q", got, want)
	}
	if got, err := codec.Append(c, nil, "a"); err != nil || string(got) != "a" || c.Tag() != "str" {
		t.Errorf("Append = %q, %v as %q, want the format of the first codec", got, err, c.Tag())
	}
	for tag, src := range map[string]string{"str": "7", "json": `"7"`, "i64": "\x00\x00\x00\x00\x00\x00\x00\x07"} {
		if got, err := decodeTag(c, tag, []byte(src)); err != nil || got != "7" {
			t.Errorf("Decode(%q) = %q, %v, want 7", tag, got, err)
		}
	}
	if got, err := c.Decode([]byte("7")); err != nil || got != "7" {
		t.Errorf("Decode = %q, %v, want the value in the first format", got, err)
	}
	_, err := decodeTag(c, "json", []byte("7"))
	wantCorrupt(t, err, "json", "7")
	codec.Readers(c)[0].Decode = nil // a copy for the caller
	if _, err := decodeTag(c, "str", []byte("x")); err != nil {
		t.Errorf("after a caller changed its slice: %v", err)
	}
}

func TestConvert(t *testing.T) {
	c := codec.Convert(codec.Fallback(codec.Int64(), codec.JSON[int64]()), toText, fromText)
	contract(t, c, same, []stored[string]{
		{"number", "258", "\x00\x00\x00\x00\x00\x00\x01\x02"},
	}, []string{"1", "\xff\xff\xff\xff\xff\xff\xff\xff"})
	if got, err := decodeTag(c, "json", []byte("12")); err != nil || got != "12" {
		t.Errorf("Decode = %q, %v, want 12", got, err)
	}
	_, err := decodeTag(c, "json", []byte("-1"))
	wantCorrupt(t, err, "json", "-1")
	if !errors.Is(err, strconv.ErrRange) {
		t.Errorf("Decode = %v, want the function's error as its cause", err)
	}
	out, err := c.Append(nil, "x")
	wantEncode(t, out, err, "i64", "invalid syntax")
}

func TestConvertWithoutBackOnlyReads(t *testing.T) {
	c := codec.Convert(codec.Int64(), toText, nil)
	for name, err := range map[string]error{
		"Convert":  codec.Check(c),
		"Tagged":   codec.Check(codec.Tagged("a", c)),
		"Convert²": codec.Check(codec.Convert(c, fromText, toText)),
		"Fallback": codec.Check(codec.Fallback(c, codec.String())),
	} {
		if !errors.Is(err, codecerr.ErrReadOnly) {
			t.Errorf("Check of %s = %v, want ErrReadOnly, before the first write fails", name, err)
		}
	}
	out, err := c.Append(nil, "1")
	wantEncode(t, out, err, "i64", "read only")
	if err := codec.Check(codec.Fallback(codec.String(), c)); err != nil {
		t.Errorf("Check of a Fallback with this codec = %v, want nil", err)
	}
}

func TestTagged(t *testing.T) {
	c := codec.Tagged("json.v2", codec.JSON[reading]())
	contract(t, c, same, []stored[reading]{{"value", reading{TempC: 1}, `{"temp_c":1,"humidity":0}`}}, []string{"", "{"})
	if got := tagsOf(codec.Fallback(c, codec.JSON[reading]())); !slices.Equal(got, []string{"json.v2", "json"}) {
		t.Errorf("Tags = %q, want json.v2, json", got)
	}
	_, err := c.Decode([]byte("{"))
	if want := `codec: corrupt "json.v2" payload of 1 bytes "{": unexpected end of JSON input`; err.Error() != want {
		t.Errorf("Decode = %v, want %s", err, want)
	}
	out, err := codec.Append(codec.Tagged("text", codec.String()), nil, "\xff")
	wantEncode(t, out, err, "text", "UTF-8")
}

// tagsOf returns the tags that a codec reads.
func tagsOf[T any](c codec.Codec[T]) (tags []string) {
	for _, r := range codec.Readers(c) {
		tags = append(tags, r.Tag)
	}
	return tags
}
