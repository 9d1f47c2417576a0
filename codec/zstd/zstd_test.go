package zstd_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	kzstd "github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/internal/codecerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func wantCorrupt(t *testing.T, err error, tag, src, part string) {
	t.Helper()
	is, ok := errors.AsType[*codecerr.Corrupt](err)
	if !ok || is.Tag != tag || is.Len != len(src) || !strings.Contains(err.Error(), part) {
		t.Errorf("Decode(%.40q) = %v, want a CorruptError of %q about %q", src, err, tag, part)
	}
}

func TestWrapRoundTrip(t *testing.T) {
	c := zstd.Wrap(codec.String(), zstd.Options{})
	if err := codec.Check(c); err != nil || c.Tag() != "str+zstd" {
		t.Fatalf("Check = %v of tag %q, want nil of str+zstd", err, c.Tag())
	}
	for _, want := range []string{
		"", "a", strings.Repeat("reading ", 100), strings.Repeat("x", 300_000), strings.Repeat("abc", 1<<20),
	} {
		payload, err := codec.Append(c, []byte("head"), want)
		if err != nil || !strings.HasPrefix(string(payload), "head") {
			t.Fatalf("Append of %d bytes: %v", len(want), err)
		}
		payload = payload[4:]
		if len(want) > 100 && len(payload) > len(want)/10 {
			t.Errorf("%d bytes were compressed to %d", len(want), len(payload))
		}
		got, err := decodeTag(c, "str+zstd", payload)
		for i := range payload {
			payload[i] = 0xee
		}
		if err != nil || got != want {
			t.Errorf("Decode of %d bytes = %d bytes, %v", len(want), len(got), err)
		}
	}
}

// TestWrapReadsStoredFrames checks the format: frames as the zstd program writes them for a file.
func TestWrapReadsStoredFrames(t *testing.T) {
	for name, payload := range map[string]string{
		"without checksum": "\x28\xb5\x2f\xfd\x20\x02\x11\x00\x00hi",
		"with checksum":    "\x28\xb5\x2f\xfd\x24\x02\x11\x00\x00hi\xfa\x38\x26\xea",
	} {
		got, err := zstd.Wrap(codec.String(), zstd.Options{}).Decode([]byte(payload))
		if err != nil || got != "hi" {
			t.Errorf("%s: Decode = %q, %v, want hi: stored data would not be readable", name, got, err)
		}
	}
}

func TestWrapWithFallback(t *testing.T) {
	plain := codec.Fallback(codec.String(), codec.JSON[string]())
	for name, tt := range map[string]struct {
		c    codec.Codec[string]
		tags []string
	}{
		"starting to compress": {
			codec.Fallback(zstd.Wrap(plain, zstd.Options{}), plain), []string{"str+zstd", "json+zstd", "str", "json"},
		},
		"stopping to": {
			codec.Fallback(plain, zstd.Wrap(plain, zstd.Options{})), []string{"str", "json", "str+zstd", "json+zstd"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tagsOf(tt.c); codec.Check(tt.c) != nil || !slices.Equal(got, tt.tags) {
				t.Fatalf("Tags = %q, Check = %v, want %q", got, codec.Check(tt.c), tt.tags)
			}
			for _, from := range []codec.Codec[string]{
				codec.String(), zstd.Wrap(codec.String(), zstd.Options{Level: 19}),
				codec.JSON[string](), zstd.Wrap(codec.JSON[string](), zstd.Options{}),
			} {
				payload, err := from.Append(nil, "hello")
				if err != nil {
					t.Fatal(err)
				}
				if got, err := decodeTag(tt.c, from.Tag(), payload); err != nil || got != "hello" {
					t.Errorf("payload of %q reads as %q, %v", from.Tag(), got, err)
				}
			}
		})
	}
}

func TestWrapRefusesWhatIsTooLarge(t *testing.T) {
	small, large := zstd.Wrap(codec.String(), zstd.Options{MaxSize: 100}), zstd.Wrap(codec.String(), zstd.Options{})
	out, err := small.Append(nil, strings.Repeat("a", 101))
	if out != nil || !errors.Is(err, codec.ErrEncode) || !strings.Contains(err.Error(), "want 100 at most") {
		t.Errorf("Append = %q, %v; want ErrEncode, because no reader would accept the payload", out, err)
	}
	for _, n := range []int{99, 100} {
		payload, err := small.Append(nil, strings.Repeat("a", n))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := small.Decode(payload); err != nil || len(got) != n {
			t.Errorf("%d bytes read as %d, %v", n, len(got), err)
		}
	}
	bomb, err := large.Append(nil, strings.Repeat("a", 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	_, err = small.Decode(bomb)
	wantCorrupt(t, err, "str+zstd", string(bomb), "want 100 at most")
}

func TestWrapRefusesDamage(t *testing.T) {
	c := zstd.Wrap(codec.Bytes(), zstd.Options{})
	payload, err := c.Append(nil, []byte("any bytes will do"))
	if err != nil {
		t.Fatal(err)
	}
	flipped := slices.Clone(payload)
	flipped[len(flipped)-6] ^= 1
	unsized, err := kzstd.NewWriter(nil, kzstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	var stream strings.Builder
	unsized.Reset(&stream)
	if _, err := unsized.Write(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if err := unsized.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := unsized.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ src, cause string }{
		"empty":           {"", "not a zstd frame"},
		"other bytes":     {"{}", "not a zstd frame"},
		"cut":             {string(payload[:len(payload)-1]), "EOF"},
		"flipped":         {string(flipped), "CRC"},
		"twice":           {string(payload) + string(payload), "size"},
		"garbage after":   {string(payload) + "x", "EOF"},
		"skippable":       {"\x50\x2a\x4d\x18\x00\x00\x00\x00", "not a zstd frame"},
		"no size":         {stream.String(), "declares its size"},
		"claims too much": {"\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x01\x01\x00\x00", "the size differs"}, // 16 MiB in 12 bytes
	} {
		_, err := decodeTag(c, "raw+zstd", []byte(tt.src))
		t.Run(name, func(t *testing.T) { wantCorrupt(t, err, "raw+zstd", tt.src, tt.cause) })
	}
}

func TestWrapSaysWhatTheInnerCodecSays(t *testing.T) {
	inner, err := zstd.Wrap(codec.Bytes(), zstd.Options{}).Append(nil, []byte("seven b"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = zstd.Wrap(codec.Float64(), zstd.Options{}).Decode(inner)
	wantCorrupt(t, err, "f64+zstd", string(inner), `corrupt "f64" payload of 7 bytes`)
}

func TestWrapPassesEncodeErrorsOn(t *testing.T) {
	out, err := zstd.Wrap(codec.JSON[float64](), zstd.Options{}).Append(nil, math.NaN())
	is, ok := errors.AsType[*codecerr.Encode](err)
	if out != nil || !ok || is.Tag != "json+zstd" || !strings.Contains(err.Error(), "NaN") {
		t.Errorf("Append = %q, %v, want an EncodeError about NaN", out, err)
	}
}

func TestWrapCheck(t *testing.T) {
	for _, tt := range []struct {
		c    codec.Codec[string]
		part string
	}{
		{zstd.Wrap[string](nil, zstd.Options{}), "codec is nil"},
		{zstd.Wrap(codec.String(), zstd.Options{MaxSize: -1}), "MaxSize is -1"},
		{zstd.Wrap(codec.String(), zstd.Options{Level: 23}), "Level is 23"},
		{zstd.Wrap(codec.String(), zstd.Options{Level: -1}), "Level is -1"},
		{zstd.Wrap(codec.Tagged("twenty-bytes-of-a-tag", codec.String()), zstd.Options{}), "tag is"},
		{zstd.Wrap(codec.Tagged("", codec.String()), zstd.Options{}), "tag is empty"},
	} {
		if err := codec.Check(tt.c); !errors.Is(err, codecerr.ErrInvalid) || !strings.Contains(err.Error(), tt.part) {
			t.Errorf("Check = %v, want ErrInvalid about %q", err, tt.part)
		}
		tagsOf(tt.c) // nor may it panic
		_, _ = tt.c.Append(nil, "x")
		_, _ = tt.c.Decode([]byte("x"))
	}
	forth := func(s string) (string, error) { return s, nil }
	readOnly := zstd.Wrap(codec.Convert(codec.String(), forth, nil), zstd.Options{})
	if err := codec.Check(readOnly); !errors.Is(err, codecerr.ErrReadOnly) {
		t.Errorf("Check of a read-only codec = %v, want ErrReadOnly", err)
	}
}

func TestWrapIsSafeForConcurrentUse(t *testing.T) {
	c := zstd.Wrap(codec.String(), zstd.Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			want := strings.Repeat(string(rune('a'+i)), 1000+i)
			for range 100 {
				payload, err := c.Append(nil, want)
				got, derr := c.Decode(payload)
				if err != nil || derr != nil || got != want {
					t.Errorf("wrote %.10s… and read %.10s…, %v, %v", want, got, err, derr)
					return
				}
			}
		})
	}
	wg.Wait()
}

func FuzzWrapDecode(f *testing.F) {
	c := zstd.Wrap(codec.Bytes(), zstd.Options{MaxSize: 1 << 16})
	for _, s := range []string{"", "hi", strings.Repeat("abcd", 1000)} {
		payload, err := c.Append(nil, []byte(s))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		v, err := c.Decode(src)
		if err != nil {
			if !errors.Is(err, codec.ErrCorrupt) {
				t.Fatalf("Decode(%q) = %v, want ErrCorrupt", src, err)
			}
			return
		}
		payload, err := c.Append(nil, v)
		if err != nil {
			t.Fatalf("Decode(%q) returned %d bytes, which Append refuses: %v", src, len(v), err)
		}
		if again, err := c.Decode(payload); err != nil || string(again) != string(v) {
			t.Fatalf("%d bytes read as %d, %v", len(v), len(again), err)
		}
	})
}

func BenchmarkWrap(b *testing.B) {
	report := strings.Repeat(`{"device":"roof-7","temp_c":21.5,"humidity":40,"state":"open"}`, 32)
	for name, c := range map[string]codec.Codec[string]{
		"plain":   codec.String(),
		"level=1": zstd.Wrap(codec.String(), zstd.Options{}),
		"level=3": zstd.Wrap(codec.String(), zstd.Options{Level: 3}),
	} {
		payload, err := c.Append(nil, report)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("append/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Append(nil, report); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(payload)), "payload-bytes")
		})
		b.Run("decode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Decode(payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestNumbersOfPayloads: a field of a payload is read as a number by the payload's format, whatever wraps the codec.
func TestNumbersOfPayloads(t *testing.T) {
	type reading struct {
		Kwh any `json:"kwh"`
	}
	plain := codec.JSON[reading]()
	forth := func(r reading) (string, error) { return "", nil }
	mine := codec.Tagged("mine", codec.Convert(plain, forth, func(string) (reading, error) { return reading{}, nil }))
	c := codec.Fallback(mine, zstd.Wrap(codec.Convert(plain, forth, nil), zstd.Options{}), codec.Convert(codec.Int64(), func(int64) (string, error) { return "", nil }, nil))
	payload := func(c codec.Codec[reading]) []byte {
		out, err := c.Append(nil, reading{Kwh: "7.5"})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	eight, err := codec.Int64().Append(nil, 8)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		tag, name string
		payload   []byte
		number    codec.Value
	}{
		{"mine", "kwh", payload(plain), codec.Float(7.5)},
		{"json+zstd", "kwh", payload(zstd.Wrap(plain, zstd.Options{})), codec.Float(7.5)},
		{"i64", "", eight, codec.Int(8)},
	} {
		r := codec.Readers(c)[i]
		got, err := r.Number(want.name)(want.payload)
		if r.Tag != want.tag || got != want.number || err != nil {
			t.Errorf("%s: %v, %v, want %v", r.Tag, got, err, want.number)
		}
		if got, err := r.Number("other")(want.payload); got != (codec.Value{}) || err != nil {
			t.Errorf("%s: a field that is not there is %v, %v", r.Tag, got, err)
		}
		if _, err := r.Number(want.name)([]byte(`{"kwh"`)); !errors.Is(err, codec.ErrCorrupt) {
			t.Errorf("%s: a damaged payload: %v, want ErrCorrupt", r.Tag, err)
		}
	}
}

// tagsOf returns the tags that a codec reads.
func tagsOf[T any](c codec.Codec[T]) (tags []string) {
	for _, r := range codec.Readers(c) {
		tags = append(tags, r.Tag)
	}
	return tags
}
