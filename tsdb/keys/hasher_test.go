package keys_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/keys"
)

func hasher(t testing.TB, seed byte) *keys.Hasher {
	t.Helper()
	h, err := keys.NewHasher(bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Row keys contain these parts: a release that computes other ones would lose every entity.
func TestPartsStayTheSame(t *testing.T) {
	h := hasher(t, 1)
	for _, tt := range []struct{ field, value, want string }{
		{"owner", "anna@example.com", "irjmdjzazqjlsxlduynmapkc"},
		{"owner", "", "cmobbqxqg2xuj2cajmljra7j"},
		{"", "owner", "ov6b46yibnj37zitwido3emp"},
		{"owner", strings.Repeat("x", 1000), "ilfjclekyarj3hnxbsip5w2f"},
	} {
		if got := h.Part(tt.field, tt.value); got != tt.want {
			t.Errorf("Part(%q, %.20q) = %q, want %q", tt.field, tt.value, got, tt.want)
		}
	}
}

func TestPartsDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, seed := range []byte{1, 2} {
		h := hasher(t, seed)
		for _, field := range []string{"owner", "owne", "", "device"} {
			for _, value := range []string{"anna", "ranna", "Anna", "", "owner", "deviceanna"} {
				part := h.Part(field, value)
				if len(part) != 24 || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz234567") != "" {
					t.Errorf("Part = %q", part)
				}
				what := fmt.Sprintf("%d %q %q", seed, field, value)
				if other, ok := seen[part]; ok {
					t.Errorf("%s and %s have the same part", what, other)
				}
				seen[part] = what
			}
		}
	}
}

func TestTheKey(t *testing.T) {
	key := bytes.Repeat([]byte("k"), 32)
	h, err := keys.NewHasher(key)
	if err != nil {
		t.Fatal(err)
	}
	before := h.Part("owner", "anna")
	clear(key)
	if h.Part("owner", "anna") != before {
		t.Error("the hasher uses the caller's key slice")
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		if text := fmt.Sprintf(verb+" "+verb, h, *h); strings.Contains(text, "kkkk") || strings.Contains(text, "6b6b") || strings.Contains(text, "0x6b, 0x6b") {
			t.Errorf("%s prints the key: %s", verb, text)
		}
	}
	for _, short := range [][]byte{nil, key[:32-1]} {
		if _, err := keys.NewHasher(short); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("a key of %d bytes: %v, want ErrInvalid", len(short), err)
		}
	}
	var zero *keys.Hasher
	if zero.Part("owner", "anna") != "" || new(keys.Hasher).Part("owner", "anna") != "" {
		t.Error("Part of a hasher without a key returns text, want none")
	}
}

func TestManyAtOnce(t *testing.T) {
	h := hasher(t, 1)
	want := h.Part("owner", "anna")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				if got := h.Part("owner", "anna"); got != want {
					t.Errorf("Part = %q, want %q", got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkPart(b *testing.B) {
	h := hasher(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		_ = h.Part("owner", "anna@example.com")
	}
}
