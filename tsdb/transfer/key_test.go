package transfer_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var key = bytes.Repeat([]byte("k"), 32)

// resummed is resealed with sums as somebody without the key would make them: SHA-256 over each block and the sum
// before it and, in a file with a key, an invalid sum over the number of points left out.
func resummed(file []byte, keyed bool, edit func(line string) string) []byte {
	var sum [sha256.Size]byte
	hash := sha256.New()
	hash.Write(sum[:])
	next := func() string {
		if keyed {
			hash.Write([]byte("0"))
		}
		hash.Sum(sum[:0])
		hash = sha256.New()
		hash.Write(sum[:])
		return hex.EncodeToString(sum[:])
	}
	return resealedWith(file, edit, func(text string) string {
		for _, start := range []string{`{"sum":"`, `{"end":"`} {
			if rest, ok := strings.CutPrefix(text, start); ok {
				return start + next() + rest[2*sha256.Size:]
			}
		}
		return text
	}, func(line []byte) { hash.Write(line) })
}

// TestForgedExport: if a file was made with a key, a changed file with recomputed sums is detected before any of it is
// used. Without a key it is accepted.
func TestForgedExport(t *testing.T) {
	for name, with := range map[string][]byte{"with a key": key, "without": nil} {
		t.Run(name, func(t *testing.T) {
			store, _ := tsdbtest.Open(t, clock, all...)
			fill(t, store, acme, 3)
			var file bytes.Buffer
			done, err := transfer.Export(t.Context(), store, acme, &file, transfer.ExportOptions{Key: with})
			if err != nil {
				t.Fatal(err)
			}
			if held, err := transfer.Check(t.Context(), bytes.NewReader(file.Bytes()), with); err != nil || held.Points != done.Points {
				t.Fatalf("the original file: %+v, %v", held, err)
			}
			for what, edit := range map[string]func(string) string{
				"a point":    func(l string) string { return strings.Replace(l, `"time":"2026-06`, `"time":"2026-05`, 1) },
				"the header": func(l string) string { return strings.Replace(l, `"at":"2`, `"at":"1`, 1) },
			} {
				forged := resummed(file.Bytes(), with != nil, edit)
				if bytes.Equal(forged, file.Bytes()) {
					t.Fatalf("%s: the test changed nothing", what)
				}
				_, err := transfer.Check(t.Context(), bytes.NewReader(forged), with)
				if with == nil && err != nil {
					t.Errorf("%s: the test's sums differ from Export's: %v", what, err)
				}
				if with != nil && !errors.Is(err, transfer.ErrDamaged) {
					t.Errorf("%s: Check of a forged file: %v, want ErrDamaged", what, err)
				}
				to, conn := tsdbtest.Open(t, clock, all...)
				conn.Reset()
				got, err := transfer.Import(t.Context(), to, acme, bytes.NewReader(forged), transfer.ImportOptions{Key: with, Create: true})
				if n := len(conn.Counts().Calls); with != nil && (!errors.Is(err, transfer.ErrDamaged) || n != 0) {
					t.Errorf("%s: Import of a forged file made %d requests: %+v, %v", what, n, got, err)
				}
			}
		})
	}
}

// TestKeys: an export with a key can only be continued and read with that key.
func TestKeys(t *testing.T) {
	store, _ := tsdbtest.Open(t, clock, all...)
	fill(t, store, acme, 3)
	export := func(key []byte) []byte {
		var file bytes.Buffer
		if _, err := transfer.Export(t.Context(), store, acme, &file, transfer.ExportOptions{Key: key}); err != nil {
			t.Fatal(err)
		}
		return file.Bytes()
	}
	signed, plain, other := export(key), export(nil), bytes.Repeat([]byte("o"), 32)
	for _, c := range []struct {
		name string
		file []byte
		key  []byte
		says string
	}{
		{"another key", signed, other, "fingerprint"},
		{"no key", signed, nil, "fingerprint"},
		{"a key that the file was not made with", plain, key, "without one"},
	} {
		_, checked := transfer.Check(t.Context(), bytes.NewReader(c.file), c.key)
		_, imported := transfer.Import(t.Context(), store, acme, bytes.NewReader(c.file), transfer.ImportOptions{Key: c.key})
		_, _, recovered := transfer.Recover(t.Context(), bytes.NewReader(c.file), c.key)
		for call, err := range map[string]error{"Check": checked, "Import": imported, "Recover": recovered} {
			if !errors.Is(err, transfer.ErrKey) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s with %s: %v", call, c.name, err)
			}
		}
	}
	if _, err := transfer.Check(t.Context(), bytes.NewReader(signed), []byte("short")); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("a key of 5 bytes: %v, want ErrInvalid", err)
	}
	at, complete, err := transfer.Recover(t.Context(), bytes.NewReader(signed[:len(signed)-10]), key)
	if err != nil || complete || at.Line == 0 {
		t.Fatalf("Recover = %+v, %v, %v", at, complete, err)
	}
	if _, err := transfer.Export(t.Context(), store, acme, &bytes.Buffer{}, transfer.ExportOptions{Continue: at}); !errors.Is(err, transfer.ErrKey) {
		t.Errorf("continue without the key: %v, want ErrKey", err)
	}
	rest := bytes.NewBuffer(bytes.Clone(signed[:at.Offset]))
	if _, err := transfer.Export(t.Context(), store, acme, rest, transfer.ExportOptions{Continue: at, Key: key}); err != nil || !bytes.Equal(rest.Bytes(), signed) {
		t.Errorf("continue with the key: %v", err)
	}
	var head struct{ Key string }
	line, _, _ := bytes.Cut(signed, []byte("\n"))
	if err := json.Unmarshal(line, &head); err != nil || len(head.Key) != 16 {
		t.Errorf("the header is %+v, %v", head, err)
	}
}
