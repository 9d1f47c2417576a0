package codec_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/codecerr"
)

// stored is a value and its bytes, on which other programs and later versions rely.
type stored[T any] struct {
	name  string
	value T
	bytes string
}

// contract checks what every codec promises: its bytes, decoding, appending, not keeping its input, and typed errors.
func contract[T any](t *testing.T, c codec.Codec[T], equal func(a, b T) bool, good []stored[T], corrupt []string) {
	t.Helper()
	if err := codec.Check(c); err != nil {
		t.Fatalf("Check = %v, want nil", err)
	}
	if !strings.Contains(c.Tag(), ".") { // made by Tagged
		documented(t, c.Tag())
	}
	for _, tt := range good {
		t.Run(tt.name, func(t *testing.T) {
			got, err := codec.Append(c, nil, tt.value)
			if err != nil || string(got) != tt.bytes {
				t.Fatalf("Append = %q, %v, want %q: stored data would not be readable", got, err, tt.bytes)
			}
			behind, err := c.Append([]byte("ab"), tt.value)
			if err != nil || string(behind) != "ab"+tt.bytes {
				t.Errorf("Append to ab = %q, %v; want ab%s", behind, err, tt.bytes)
			}
			src := []byte(tt.bytes)
			back, err := decodeTag(c, c.Tag(), src)
			for i := range src {
				src[i] = 0xee // a decoder that kept src would now hold this byte
			}
			if err != nil || !equal(back, tt.value) {
				t.Errorf("Decode = %v, %v, want %v", back, err, tt.value)
			}
		})
	}
	for _, bad := range corrupt {
		_, err := c.Decode([]byte(bad))
		wantCorrupt(t, err, c.Tag(), bad)
	}
}

// documented checks that users find a built-in codec in the package comment, and its bytes in the specification.
func documented(t *testing.T, tag string) {
	t.Helper()
	for file, entry := range map[string]string{"doc.go": `"` + tag + `"`, "../docs/format.md": "| `" + tag + "` |"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), entry) {
			t.Errorf("%s has no %s: nobody finds the codec, or how to read its payloads", file, entry)
		}
	}
}

func wantCorrupt(t *testing.T, err error, tag, src string) {
	t.Helper()
	is, ok := errors.AsType[*codecerr.Corrupt](err)
	if !ok || !errors.Is(err, codec.ErrCorrupt) {
		t.Fatalf("Decode(%.40q) = %v, want a CorruptError", src, err)
	}
	sample := src[:min(len(src), 32)]
	if is.Tag != tag || is.Len != len(src) || string(is.Sample) != sample || is.Err == nil {
		t.Errorf("Decode(%.40q): tag %q, %d bytes %q, cause %v; want tag %q, %d bytes %q and a cause",
			src, is.Tag, is.Len, is.Sample, is.Err, tag, len(src), sample)
	}
}

func wantEncode(t *testing.T, out []byte, err error, tag, part string) {
	t.Helper()
	is, ok := errors.AsType[*codecerr.Encode](err)
	if !ok || !errors.Is(err, codec.ErrEncode) || is.Tag != tag || !strings.Contains(err.Error(), part) {
		t.Errorf("Append = %v, want an EncodeError of %q about %q", err, tag, part)
	}
	if out != nil {
		t.Errorf("Append returned %q with its error, want dst unchanged", out)
	}
}

func same[T comparable](a, b T) bool { return a == b }

// stable checks that whatever decodes can be encoded, and that its encoding does not change in further round trips.
// Each fuzz test of a decoder uses it.
func stable[T any](t *testing.T, c codec.Codec[T], src []byte) {
	t.Helper()
	v, err := decodeTag(c, c.Tag(), src)
	if err != nil {
		wantCorrupt(t, err, c.Tag(), string(src))
		return
	}
	first, err := codec.Append(c, nil, v)
	if err != nil {
		t.Fatalf("Decode(%q) = %v, but Append refuses it: %v", src, v, err)
	}
	again, err := decodeTag(c, c.Tag(), first)
	if err != nil {
		t.Fatalf("Decode of Append's output %q: %v", first, err)
	}
	second, err := codec.Append(c, nil, again)
	if err != nil || !bytes.Equal(first, second) {
		t.Fatalf("encoded %q and, after a read, %q, %v: want the same bytes", first, second, err)
	}
}
