package cursor_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tidemark-go/tidemark/internal/cursor"
)

// FuzzSealed: nothing but what was sealed is read, and that in its own scope alone.
func FuzzSealed(f *testing.F) {
	b := box(f, key(1), key(2))
	f.Add(goldenSealed, "acme", "readings", "berlin#roof-7")
	f.Add(goldenSealed, "acme2", "readings", "berlin#roof-7")
	f.Add(goldenUnsealed, "acme", "readings", "berlin#roof-7")
	f.Add("", "", "", "")
	f.Add("AQ", "acme", "readings", "x")
	f.Fuzz(func(t *testing.T, text, tenant, dataset, path string) {
		s := scope
		s.Tenant, s.Dataset, s.Path = tenant, dataset, path
		at, err := b.ReadTime(s, text)
		if err == nil && (text != goldenSealed || s != scope || at != units) {
			t.Errorf("%q of %+v is read as %d, and was never written", text, s, at)
		}
		if err != nil && !errors.Is(err, cursor.ErrCursor) {
			t.Errorf("%v does not match ErrCursor", err)
		}
	})
}

// FuzzUnsealed: whatever is read has one spelling, and lies in its scope.
func FuzzUnsealed(f *testing.F) {
	var b cursor.Box
	f.Add(goldenUnsealed, []byte("12345678"), int64(0), int64(1)<<62, false)
	f.Add("", []byte{}, int64(0), int64(-1), true)
	f.Add("AA", []byte{0, 0, 0, 0, 0, 0, 0, 9}, int64(9), int64(9), true)
	f.Add(goldenSealed, []byte("123456789"), int64(-1), int64(5), true)
	f.Fuzz(func(t *testing.T, text string, place []byte, oldest, newest int64, reverse bool) {
		s := scope
		s.Oldest, s.Newest, s.Reverse = oldest, newest, reverse
		for _, text := range []string{text, b.Write(s, place)} { // the second one is a forger's, who knows all but has no key
			got, err := b.Read(s, text)
			at, errTime := b.ReadTime(s, text)
			for _, err := range []error{err, errTime} {
				if err != nil && !errors.Is(err, cursor.ErrCursor) {
					t.Errorf("%v does not match ErrCursor", err)
				}
			}
			if err == nil && b.Write(s, got) != text {
				t.Errorf("%q is read as %x, which is written as %q", text, got, b.Write(s, got))
			}
			if errTime == nil && (err != nil || at < oldest || at > newest || b.WriteTime(s, at) != text) {
				t.Errorf("%q stands at %d, out of %d to %d", text, at, oldest, newest)
			}
		}
		if got, err := b.Read(s, b.Write(s, place)); len(place) <= 4096 && (err != nil || !bytes.Equal(got, place)) {
			t.Errorf("%x is read as %x, %v", place, got, err)
		}
	})
}
