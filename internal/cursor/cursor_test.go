package cursor_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// key returns a key that is not random, so that what it seals can be written down.
func key(n byte) []byte {
	k := bytes.Repeat([]byte{n}, cursor.KeySize)
	k[0] = ^n
	return k
}

func box(t testing.TB, keys ...[]byte) cursor.Box {
	t.Helper()
	b, err := cursor.NewBox(keys)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var scope = cursor.Scope{
	Kind: cursor.Points, Tenant: "acme", Dataset: "readings", Path: "berlin#roof-7", Oldest: 100, Newest: math.MaxInt64,
}

const units = 1767225600000000000

// Cursors of units in scope, from the boxes in modes.
const (
	goldenSealed   = "ARgXqR_azLbB9l3czR1fS8CSviHFgV0N9oDadEC-VEZEnyWX9IWM_0scU1ll0KPqCw"
	goldenUnsealed = "ADBNUsTgr2Ai_hnAqhiGclHt-gAA"
)

// modes are boxes with and without keys.
func modes(t testing.TB) map[string]cursor.Box {
	return map[string]cursor.Box{"sealed": box(t, key(1), key(2)), "unsealed": box(t)}
}

// refused checks that a cursor is refused, without a word of what it holds.
func refused(t testing.TB, b cursor.Box, s cursor.Scope, text, what string) {
	t.Helper()
	at, err := b.ReadTime(s, text)
	if !errors.Is(err, cursor.ErrCursor) || at != 0 {
		t.Errorf("%s: %d, %v; want ErrCursor", what, at, err)
		return
	}
	if e, ok := errors.AsType[*invalid.Error](err); !ok || e.Field != "cursor" {
		t.Errorf("%s: %v names no field", what, err)
	}
	if len(text) > 8 && strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v repeats the cursor", what, err)
	}
}

func TestWhatWasWrittenIsRead(t *testing.T) {
	for mode, b := range modes(t) {
		for _, at := range []int64{100, 101, units, math.MaxInt64 - 1, math.MaxInt64} {
			text := b.WriteTime(scope, at)
			if got, err := b.ReadTime(scope, text); got != at || err != nil {
				t.Errorf("%s: %d is read as %d, %v", mode, at, got, err)
			}
			if strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
				t.Errorf("%s: %q has to be escaped in a URL", mode, text)
			}
		}
		for _, place := range [][]byte{nil, []byte("berlin#roof-7"), bytes.Repeat([]byte("x"), rowkey.MaxKey)} {
			if got, err := b.Read(scope, b.Write(scope, place)); !bytes.Equal(got, place) || err != nil {
				t.Errorf("%s: a place of %d bytes is read as %d, %v", mode, len(place), len(got), err)
			}
		}
	}
}

// TestChangedCursors: each bit of the text, and of what it stands for, flipped; cut off; longer; spelled in another
// way.
func TestChangedCursors(t *testing.T) {
	for mode, b := range modes(t) {
		text := b.WriteTime(scope, units)
		for i := range len(text) {
			for bit := range 8 {
				changed := []byte(text)
				changed[i] ^= 1 << bit
				refused(t, b, scope, string(changed), mode+", a bit of the text flipped")
			}
			refused(t, b, scope, text[:i], mode+", cut off")
			refused(t, b, scope, text[i+1:], mode+", without its start")
			for _, extra := range []string{"\n", "\r\n", "=", "A", " ", "\x00", "%3D"} {
				refused(t, b, scope, text[:i]+extra+text[i:], mode+", with more in it")
			}
		}
		raw, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		for i := range raw {
			for bit := range 8 {
				changed := bytes.Clone(raw)
				changed[i] ^= 1 << bit
				refused(t, b, scope, base64.RawURLEncoding.EncodeToString(changed), mode+", a bit flipped")
			}
			refused(t, b, scope, base64.RawURLEncoding.EncodeToString(raw[:i]), mode+", cut off")
			refused(t, b, scope, base64.RawURLEncoding.EncodeToString(append(bytes.Clone(raw), raw[:i+1]...)), mode+", longer")
		}
		for what, other := range map[string]string{
			"nothing": "", "padding": text + "=", "a line end": text + "\n", "twice": text + text, "not UTF-8": "\xff\xfe",
			"a megabyte": strings.Repeat("A", 1<<20), "another alphabet": "+/+/" + text[4:],
		} {
			refused(t, b, scope, other, mode+", "+what)
		}
	}
}

// TestOtherScopes: a cursor is of no use where anything of its scope differs, however the names are put together.
func TestOtherScopes(t *testing.T) {
	scopes := []cursor.Scope{scope}
	for _, change := range []func(*cursor.Scope){
		func(s *cursor.Scope) { s.Kind++ },
		func(s *cursor.Scope) { s.Tenant = "acme2" },
		func(s *cursor.Scope) { s.Tenant = "" },
		func(s *cursor.Scope) { s.Dataset = "reading" },
		func(s *cursor.Scope) { s.Precision++ },
		func(s *cursor.Scope) { s.Path = "berlin#roof-" },
		func(s *cursor.Scope) { s.Oldest-- },
		func(s *cursor.Scope) { s.Newest-- },
		func(s *cursor.Scope) { s.Reverse = true },
		func(s *cursor.Scope) { s.Tenant, s.Dataset = "acmer", "eadings" },
		func(s *cursor.Scope) { s.Tenant, s.Dataset, s.Path = "acm", "ereadings", "berlin#roof-7" },
		func(s *cursor.Scope) { s.Dataset, s.Path = "readingsb", "erlin#roof-7" },
		func(s *cursor.Scope) { s.Dataset, s.Path = "readings\rberlin#roof-7", "" },
		func(s *cursor.Scope) { s.Tenant, s.Dataset, s.Path = "acme\x08readings\rberlin#roof-7", "", "" },
		func(s *cursor.Scope) { s.Path = strings.Repeat("x", 3000) },
	} {
		s := scope
		change(&s)
		scopes = append(scopes, s)
	}
	for mode, b := range modes(t) {
		for i, s := range scopes {
			text := b.WriteTime(s, units)
			for j, other := range scopes {
				if i != j {
					refused(t, b, other, text, mode)
				} else if at, err := b.ReadTime(s, text); at != units || err != nil {
					t.Errorf("%s: scope %d: %d, %v", mode, i, at, err)
				}
			}
		}
	}
}

// TestPlacesOutsideOfTheScope can come from a forger alone.
func TestPlacesOutsideOfTheScope(t *testing.T) {
	s := scope
	s.Oldest, s.Newest = 100, 200
	for mode, b := range modes(t) {
		for _, at := range []int64{99, 201, 0, -1, math.MinInt64, math.MaxInt64} {
			refused(t, b, s, b.WriteTime(s, at), mode)
		}
		for n := range 20 {
			if n != 8 {
				refused(t, b, s, b.Write(s, make([]byte, n)), mode)
			}
		}
	}
}

func TestRotation(t *testing.T) {
	first, both, turned, second := box(t, key(1)), box(t, key(1), key(2)), box(t, key(2), key(1)), box(t, key(2))
	none, other := box(t), box(t, key(3), key(4))
	for _, tt := range []struct {
		what     string
		from, to cursor.Box
		opens    bool
	}{
		{"the new key is added", first, both, true},
		{"a program that is behind reads one that has added the key", both, first, true},
		{"the new key seals", both, turned, true},
		{"one that is behind reads one whose new key seals", turned, both, true},
		{"the old key is gone", turned, second, true},
		{"an old cursor after the old key is gone", first, second, false},
		{"a new cursor before the key was added", turned, first, false},
		{"other keys", first, other, false},
		{"keys where there were none", none, first, false},
		{"no keys where there were some", first, none, false},
	} {
		text := tt.from.WriteTime(scope, units)
		if at, err := tt.to.ReadTime(scope, text); tt.opens && (at != units || err != nil) {
			t.Errorf("%s: %d, %v", tt.what, at, err)
		}
		if !tt.opens {
			refused(t, tt.to, scope, text, tt.what)
		}
	}
}

func TestBadKeys(t *testing.T) {
	secret := []byte("a secret that must not be shown!")
	for what, keys := range map[string][][]byte{
		"cursor key 1 is 0 bytes":                 {nil},
		"cursor key 2 is 31 bytes":                {key(1), secret[:31]},
		"cursor key 1 is 33 bytes":                {append(bytes.Clone(secret), '!')},
		"cursor key 1 is one byte over and over":  {make([]byte, 32)},
		"cursor keys is 17 keys; want at most 16": make([][]byte, 17),
	} {
		_, err := cursor.NewBox(keys)
		if !errors.Is(err, rowkey.ErrInvalid) || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), string(secret[:4])) {
			t.Errorf("%v, want %q", err, what)
		}
	}
	if b := box(t); b.Sealed() {
		t.Error("a box without keys seals")
	}
	own := key(1)
	b := box(t, own)
	text := b.WriteTime(scope, units)
	clear(own)
	if _, err := b.ReadTime(scope, text); err != nil {
		t.Errorf("the box has kept its caller's key: %v", err)
	}
}

// TestCursorsStayReadable: clients hold cursors, and programs of two versions run side by side, while one is replaced.
func TestCursorsStayReadable(t *testing.T) {
	for mode, text := range map[string]string{
		"sealed": goldenSealed, "unsealed": goldenUnsealed,
	} {
		if at, err := modes(t)[mode].ReadTime(scope, text); at != units || err != nil {
			t.Errorf("a %s cursor of before: %d, %v; now it would be %s", mode, at, err, modes(t)[mode].WriteTime(scope, units))
		}
	}
}

// TestSealedCursorsSayNothing: two of the same place have nothing in common but their form.
func TestSealedCursorsSayNothing(t *testing.T) {
	b := box(t, key(1))
	seen := map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				text := b.WriteTime(scope, units)
				if at, err := b.ReadTime(scope, text); at != units || err != nil {
					t.Errorf("at the same time as others: %d, %v", at, err)
				}
				mu.Lock()
				for _, part := range []string{text[4:32], text[36:]} { // the nonce; what is sealed
					if seen[part] {
						t.Errorf("%q comes twice", part)
					}
					seen[part] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
