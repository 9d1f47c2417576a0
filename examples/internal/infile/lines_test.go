package infile

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/influxdata/line-protocol/v2/lineprotocol"
)

// split returns the lines of a text, each with its position or its error.
func split(t testing.TB, r io.Reader) (out []string) {
	t.Helper()
	ls := NewLines(r)
	for {
		l, err := ls.Next()
		switch {
		case err == io.EOF:
			return out
		case err != nil:
			t.Fatal(err)
		case l.Err != nil:
			out = append(out, l.String()+": "+l.Err.Error())
		default:
			out = append(out, l.String()+": "+string(l.Payload))
		}
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"one without a newline", "a b=1", "line 1: a b=1"},
		{"two", "a b=1\nc d=2\n", "line 1: a b=1|line 2: c d=2"},
		{"blank ones and both newlines", "\r\na b=1\r\n\n", "line 1: |line 2: a b=1|line 3: "},
		{"a newline in a text", "a b=\"x\ny\",c=1\nd e=1", "line 1 to 2 a|line 3: d e=1"},
		{"a quote in a tag", "a,t=\" b=1\nc d=2", "line 1: a,t=\" b=1|line 2: c d=2"},
		{"a quote within a value", "a b=1\"\nc d=2", "line 1: a b=1\"|line 2: c d=2"},
		{"a quote in a name", "a \"b=1\nc d=2", "line 1: a \"b=1|line 2: c d=2"},
		{"escaped quotes", `a b="\"",c="\\"` + "\nc d=2", `line 1: a b="\"",c="\\"|line 2: c d=2`},
		{"an escaped space", `a\ b c="x` + "\ny\" 1\nd e=1", "line 1 to 2 a|line 3: d e=1"},
		{"a comment", "# b=\"\nc d=2", "line 1: # b=\"|line 2: c d=2"},
		{"a text that does not end", "a b=\"x\nc d=2\n\n", "lines 1 to 3: " + errOpenText.Error()},
		{"a long line", "a b=1\n" + long + "y\nc d=2", "line 1: a b=1|line 2: " + errLongLine.Error() + "|line 3: c d=2"},
		{"a long text", `a b="` + long + "\n" + long + "\"\nc d=2", "lines 1 to 2: " + errLongLine.Error() + "|line 3: c d=2"},
	} {
		if strings.Contains(tt.want, "line 1 to 2 a") { // the text itself contains the separator's newline
			first, _, _ := strings.Cut(tt.text, "\nd e=1")
			tt.want = strings.Replace(tt.want, "line 1 to 2 a", "lines 1 to 2: "+first, 1)
		}
		for name, r := range map[string]io.Reader{"": strings.NewReader(tt.text), ", byte by byte": iotest.OneByteReader(strings.NewReader(tt.text))} {
			if got := strings.Join(split(t, r), "|"); got != tt.want {
				t.Errorf("%s%s: %.200q, want %.200q", tt.name, name, got, tt.want)
			}
		}
	}
	if _, err := NewLines(iotest.ErrReader(io.ErrUnexpectedEOF)).Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("reading: %v", err)
	}
}

// FuzzLines compares with the decoder: if the decoder reads a whole text without an error, both find the same number of
// points.
func FuzzLines(f *testing.F) {
	f.Add("a,t=x b=\"x\ny\",c=1 1\nd e=1i\n# c\n\nf g=t")
	f.Add("a\\ b,c=\\\" d=\"\\\\\" 1\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 || strings.ContainsRune(strings.ReplaceAll(text, "\r\n", ""), '\r') {
			return // the decoder treats a single carriage return as a line end
		}
		points, ok := count([]byte(text))
		if !ok {
			return
		}
		ls := NewLines(strings.NewReader(text))
		sum := 0
		for {
			l, err := ls.Next()
			if err == io.EOF {
				break
			}
			if err != nil || l.Err != nil {
				t.Fatalf("%q: %v, %v, but the decoder accepts it", text, err, l.Err)
			}
			n, ok := count(l.Payload)
			if !ok || n > 1 {
				t.Fatalf("%q: %v is %q, which the decoder does not read as one", text, l, l.Payload)
			}
			sum += n
		}
		if sum != points {
			t.Fatalf("%q: %d points, but the decoder finds %d", text, sum, points)
		}
	})
}

// count returns how many points the decoder finds, and whether it finds no error.
func count(text []byte) (n int, ok bool) {
	d := lineprotocol.NewDecoderWithBytes(text)
	for d.Next() {
		n++
		if _, err := d.Measurement(); err != nil {
			return n, false
		}
		for {
			name, _, err := d.NextTag()
			if err != nil {
				return n, false
			}
			if name == nil {
				break
			}
		}
		for {
			name, _, err := d.NextField()
			if err != nil {
				return n, false
			}
			if name == nil {
				break
			}
		}
		if _, err := d.TimeBytes(); err != nil {
			return n, false
		}
	}
	return n, true
}
