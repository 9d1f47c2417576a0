package transfer

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

func testHeader(t testing.TB) *header {
	h := &header{Tidemark: kind, Version: version, Tenant: "acme", Datasets: []catalog.Dataset{
		{Name: "ms", Key: []string{"a", "b"}, Precision: "ms", Tags: []string{"json"}, Classes: []catalog.Class{{Name: "keep", Policy: "never"}}},
		{Name: "ns", Key: []string{"a"}, Precision: "ns", Salts: 7, Tags: []string{"json", "str"}, Classes: []catalog.Class{{Name: "keep", Policy: "never"}}},
	}}
	if err := h.resolve(); err != nil {
		t.Fatal(err)
	}
	return h
}

// Any payload is written in one line, and read back byte for byte.
func FuzzPoint(f *testing.F) {
	for _, payload := range []string{"", "1", " 1", "1\n", "{\"a\": 1}", "1,\"crc\":2", "1}", "{\"a\":\"\xff\"}", "\"\u2028\x7f\"", "null", strings.Repeat("[", 9999) + strings.Repeat("]", 9999)} {
		f.Add("berlin", payload, int64(1_780_315_200_123_456_789), true)
		f.Add("#%\x00\"\\\x7f\u2028<é>", payload, int64(0), false)
	}
	f.Add("x", "1", int64(1<<63-1), true)
	h := testHeader(f)
	f.Fuzz(func(t *testing.T, part, payload string, units int64, js bool) {
		d := h.datasets[0]
		p := points.RawPoint{Path: rowkey.Path(part, part), Units: units, Class: "keep", Tag: "json", Payload: []byte(payload)}
		if !js {
			d, p.Tag, p.Path = h.datasets[1], "str", rowkey.Path(part)
		}
		if part == "" || !utf8.ValidString(part) || units < 0 || units > d.precision.Max() || d.space.CheckPath(p.Path) != nil {
			t.Skip()
		}
		line := appendPoint(nil, d, p)
		if bytes.ContainsAny(line, "\r\n") {
			t.Fatalf("more than one line: %q", line)
		}
		gotD, got, err := h.parsePoint(line)
		if err != nil {
			t.Fatalf("parse %q: %v", line, err)
		}
		if gotD != d || got.Path != p.Path || got.Units != p.Units || got.Class != p.Class || got.Tag != p.Tag || !bytes.Equal(got.Payload, p.Payload) {
			t.Fatalf("%q is read as %+v; want %+v", line, got, p)
		}
	})
}

// A line is rejected, or it is the only line of its point.
func FuzzParsePoint(f *testing.F) {
	h := testHeader(f)
	f.Add(string(appendPoint(nil, h.datasets[0], points.RawPoint{Path: "a#b", Units: 5, Class: "keep", Tag: "json", Payload: []byte("1")})))
	f.Add(string(appendPoint(nil, h.datasets[1], points.RawPoint{Path: "%20", Units: 5, Class: "keep", Tag: "str", Payload: []byte{0xff}})))
	for _, s := range []string{
		`{"dataset":"ns","entity":["a"],"time":"2026-06-01T12:00:00Z","class":"keep","tag":"str"`,
		`{"dataset":"ns","entity":["a"],"time":"2026-06-01T12:00:00Z","class":"keep","tag":"str","base64":"","base64":"AA=="`,
		`{"Dataset":"ns","entity":["a"],"time":"2026-06-01T12:00:00Z","class":"keep","tag":"str","base64":""`,
		`{"dataset":"ns","entity":["a",""],"time":"2026-06-01T12:00:00Z","class":"keep","tag":"str","base64":""`,
		`{"dataset":"ms","entity":["a","b"],"time":"2026-06-01T12:00:00.0000001Z","class":"keep","tag":"json","json":1`,
		`{"dataset":"ms","entity":["a","b"],"units":-1,"class":"keep","tag":"json","json":1`,
	} {
		if _, _, err := h.parsePoint([]byte(s)); !errors.Is(err, ErrDamaged) {
			f.Errorf("%s: %v; want an error", s, err)
		}
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, p, err := h.parsePoint([]byte(text))
		switch {
		case err != nil && !errors.Is(err, ErrDamaged):
			t.Fatalf("%q: %v, want ErrDamaged", text, err)
		case err == nil && string(appendPoint(nil, d, p)) != text:
			t.Fatalf("%q is not the line that Export writes for %+v", text, p)
		}
	})
}

// Reading any file, even with correct seals, ends with its end or an error that names a line.
func FuzzFile(f *testing.F) {
	f.Add(`{"tidemark":"export","version":1,"tenant":"acme","at":"2026-06-01T12:00:00Z","datasets":[]`)
	f.Add(`{"tidemark":"export","version":1,"tenant":"acme","at":"2026-06-01T12:00:00Z","datasets":[{"name":"a","key":["k"],"precision":"ns"}]
{"sum":"00","lines":2,"points":0,"unreadable":-1
{"end":"00","lines":3`)
	f.Fuzz(func(t *testing.T, text string) {
		c := newChain(nil)
		var file bytes.Buffer
		for line := range strings.SplitSeq(text, "\n") {
			file.Write(c.seal([]byte(line), true))
		}
		for _, b := range [][]byte{file.Bytes(), []byte(text)} {
			bl, err := openBlocks(bytes.NewReader(b), nil)
			for err == nil {
				err = bl.next()
			}
			if le, ok := errors.AsType[*LineError](err); !errors.Is(err, io.EOF) && (!ok || le.Line < 1) {
				t.Fatalf("%v names no line", err)
			}
		}
	})
}

func TestLongLineIsRefused(t *testing.T) {
	_, err := openBlocks(io.LimitReader(endless{}, 1<<30), nil)
	if !errors.Is(err, ErrVersion) {
		t.Errorf("got %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
