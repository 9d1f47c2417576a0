package infile

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// opened returns a file with a text.
func opened(t testing.TB, name, text string) *File {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// rest returns the records that a reader has left, each with its place, and its fields, payload or error.
func rest(t testing.TB, r Reader) (out []string) {
	t.Helper()
	for {
		rec, err := r.Next()
		switch {
		case err == io.EOF:
			return out
		case err != nil:
			t.Fatal(err)
		case rec.Err != nil:
			out = append(out, rec.String()+": "+rec.Err.Error())
		case rec.Values != nil:
			values := maps.Clone(rec.Values)
			maps.DeleteFunc(values, func(_ string, v any) bool { return v == nil })
			fields, err := json.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, rec.String()+" "+string(fields))
		default:
			out = append(out, rec.String()+" "+string(rec.Payload))
		}
	}
}

func TestCSV(t *testing.T) {
	long := strings.Repeat("x", MaxRecord)
	only := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	for _, test := range []struct {
		name, text string
		opts       CSVOptions
		want       []string
	}{
		{"types", "n,b,s,e\n1.5,true,abc,\n-0,FALSE,+49,1e3\n", CSVOptions{}, []string{`line 2 {"b":true,"n":1.5,"s":"abc"}`, `line 3 {"b":false,"e":1e3,"n":-0,"s":"+49"}`}},
		{"leading zeros are text", "zip,n\n01234,0\n0.5,.5\n", CSVOptions{}, []string{`line 2 {"n":0,"zip":"01234"}`, `line 3 {"n.":0.5,"zip":0.5}`}},
		{"no numbers", "a,b\n0x10,1_000\nInfinity,NaN\n", CSVOptions{}, []string{`line 2 {"a":"0x10","b":"1_000"}`, `line 3 {"a":"Infinity","b":"NaN"}`}},
		{"byte order mark and carriage returns", "\ufeffa;b\r\n1;2\r\n\r\n3;4", CSVOptions{}, []string{`line 2 {"a":1,"b":2}`, `line 4 {"a":3,"b":4}`}},
		{"tab", "a\tb, c\n1\t2,5\n", CSVOptions{}, []string{`line 2 {"a":1,"b, c":"2,5"}`}},
		{"separator in a quoted name", "\"a,b\";c\n1;2\n", CSVOptions{}, []string{`line 2 {"a,b":1,"c":2}`}},
		{"the flag decides", "a,b;c\n1;2,3\n", CSVOptions{Comma: ','}, []string{`line 2 {"a":"1;2","b;c":3}`}},
		{"another separator", "a|b\n1|2\n", CSVOptions{Comma: '|'}, []string{`line 2 {"a":1,"b":2}`}},
		{"one column", "a\n1\n\n2\n", CSVOptions{}, []string{`line 2 {"a":1}`, `line 4 {"a":2}`}},
		{"decimal comma", "a;b\n1,5;1.5\n-2;1,2,3\n", CSVOptions{DecimalComma: true}, []string{`line 2 {"a":1.5,"b":"1.5"}`, `line 3 {"a":-2,"b":"1,2,3"}`}},
		{"a point in a number with a comma", "a;b\n1.234;1\n1,5;2\n", CSVOptions{DecimalComma: true, Number: only("a")}, []string{`line 2: "1.234" in the column "a" has a point, and the decimal point is a comma`, `line 3 {"a":1.5,"b":2}`}},
		{"text", "a;b\n1,50;007\n", CSVOptions{DecimalComma: true, Text: only("a", "b")}, []string{`line 2 {"a":"1,50","b":"007"}`}},
		{"quotes", "a,b\n\"x \"\"y\"\"\",\"1\"\n\"\",2\n5\" pipe,3\n", CSVOptions{}, []string{`line 2 {"a":"x \"y\"","b":1}`, `line 3 {"b":2}`, `line 4 {"a":"5\" pipe","b":3}`}},
		{"newlines in quotes", "a,b\n\"x\n\ny\",1\n2,3", CSVOptions{}, []string{`lines 2 to 4 {"a":"x\n\ny","b":1}`, `line 5 {"a":2,"b":3}`}},
		{"newline in the header", "\"a\nb\",c\n1,2\n", CSVOptions{}, []string{`line 3 {"a\nb":1,"c":2}`}},
		{"text after quotes", "a,b\n\"x\"y,1\n2,3\n", CSVOptions{}, []string{`line 2: after the quoted field "x" comes "y,1"; want a separator`, `line 3 {"a":2,"b":3}`}},
		{"an open quote", "a,b\n1,2\n\"x,3\n4,5\n", CSVOptions{}, []string{`line 2 {"a":1,"b":2}`, `lines 3 to 4: a quoted field does not end`}},
		{"too few and too many", "a,b\n1\n1,2,3\n4,5\n", CSVOptions{}, []string{`line 2: the line has 1 fields, and there are 2 columns`, `line 3: the line has 3 fields, and there are 2 columns`, `line 4 {"a":4,"b":5}`}},
		{"no UTF-8", "a\n\xe4\n1\n", CSVOptions{}, []string{"line 2: the line is not valid UTF-8; iconv -f WINDOWS-1252 -t UTF-8 converts many such files", `line 3 {"a":1}`}},
		{"a long line", "a,b\n" + long + ",1\n2,3\n", CSVOptions{}, []string{"line 2: " + errLong.Error(), `line 3 {"a":2,"b":3}`}},
		{"a long text", "a,b\n\"" + long + "\n" + long + "\",1\n2,3\n", CSVOptions{}, []string{"lines 2 to 3: " + errLong.Error(), `line 4 {"a":2,"b":3}`}},
		{"renamed", "Zeit; Temp. °C ;x\n1;2;3\n", CSVOptions{Rename: map[string]string{"Zeit": "ts", "Temp. °C": "temp"}}, []string{`line 2 {"temp":2,"ts":1,"x":3}`}},
		{"no header", "1;2,5\n3;4\n", CSVOptions{Names: []string{"a", "b"}, DecimalComma: true}, []string{`line 1 {"a":1,"b":2.5}`, `line 2 {"a":3,"b":4}`}},
		{"an unnamed column", ",a\n0,1\n", CSVOptions{}, []string{`line 2 {"":0,"a":1}`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := NewCSV(opened(t, "a.csv", test.text), test.opts)
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range rest(t, plain{c}) {
				if i >= len(test.want) || got != test.want[i] {
					t.Errorf("record %d is %.300s, want %.300q", i, got, test.want)
				}
			}
			if n := len(test.want); n > 0 && c.Position().Offset != int64(len(test.text)) {
				t.Errorf("at the end the position is %v, and the text has %d bytes", c.Position(), len(test.text))
			}
		})
	}
}

// plain shows numbers as they are in the file, also those that JSON does not have.
type plain struct{ Reader }

func (p plain) Next() (Record, error) {
	rec, err := p.Reader.Next()
	values := map[string]any{}
	for name, v := range rec.Values {
		if n, ok := v.(json.Number); ok && strings.HasPrefix(n.String(), ".") {
			v = json.RawMessage("0.5")
			name += "."
		}
		values[name] = v
	}
	if rec.Values != nil {
		rec.Values = values
	}
	return rec, err
}

func TestHeaders(t *testing.T) {
	for text, test := range map[string]struct {
		opts CSVOptions
		want string
	}{
		"":                                      {CSVOptions{}, "empty"},
		"\n\n":                                  {CSVOptions{}, "empty"},
		"a,a\n1,2\n":                            {CSVOptions{}, "two columns"},
		"a,b\n":                                 {CSVOptions{Rename: map[string]string{"a": "b"}}, "two columns"},
		"a,c\n":                                 {CSVOptions{Rename: map[string]string{"b": "x"}}, "has not"},
		"\"a\n1,2\n":                            {CSVOptions{}, "does not end"},
		"\"a\"b,c\n":                            {CSVOptions{}, "want a separator"},
		"\xff\xfea\x00,\x00b":                   {CSVOptions{}, "UTF-16"},
		"Temp. \xb0C,b\n1,2\n":                  {CSVOptions{}, "UTF-8"},
		strings.Repeat("x", MaxRecord+1) + "\n": {CSVOptions{}, "longer"},
	} {
		if _, err := NewCSV(opened(t, "a.csv", text), test.opts); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40q: %v, want an error with %q", text, err, test.want)
		}
	}
}

// TestMemoryOfCSV: a line of any length takes the memory of the longest record.
func TestMemoryOfCSV(t *testing.T) {
	for name, line := range map[string]string{"a field": "x", "a quoted field": "\"", "newlines in quotes": "\"\n"} {
		text := io.MultiReader(strings.NewReader("a,b\n"+line), io.LimitReader(endless('y'), 64<<20))
		f, err := Open("-", text)
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewCSV(f, CSVOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rec, err := c.Next()
		runtime.ReadMemStats(&after)
		if err != nil || !errors.Is(rec.Err, errLong) {
			t.Errorf("%s: %v, %v; want that it is too long", name, rec.Err, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
			t.Errorf("%s: %d bytes are allocated", name, n)
		}
	}
}

type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// FuzzCSV compares with encoding/csv, continues after each record, and never fails otherwise.
func FuzzCSV(f *testing.F) {
	f.Add("a;b\n1,5;\"x\n\"\"y\"\"\"\n\n2;3", byte(';'))
	f.Add("\ufeffa,b\r\n1,2\r\n", byte(','))
	f.Add("a\n\"", byte('\t'))
	f.Fuzz(func(t *testing.T, text string, comma byte) {
		if len(text) > 1<<16 || !slices.Contains([]byte(",;\t|"), comma) {
			return
		}
		file := func() *CSV {
			in, err := Open("-", strings.NewReader(text))
			if err != nil {
				return nil
			}
			c, err := NewCSV(in, CSVOptions{Comma: comma})
			if err != nil {
				return nil
			}
			return c
		}
		c := file()
		if c == nil {
			return
		}
		var places []Position
		var got [][]string
		faulty := false
		for {
			rec, err := c.record()
			if err == io.EOF {
				break
			}
			if err != nil {
				if !errors.Is(err, ErrDamaged) { // it may begin like a packed file
					t.Fatal(err)
				}
				return
			}
			places = append(places, c.Position())
			cells, err := c.split(rec.Text)
			faulty = faulty || rec.Err != nil || err != nil
			got = append(got, slices.Clone(cells))
		}
		for i, p := range places {
			again := file()
			if err := again.Seek(p); err != nil {
				t.Fatalf("%q: continue at %v: %v", text, p, err)
			}
			rec, err := again.record()
			if (err == io.EOF) != (i+1 == len(places)) {
				t.Fatalf("%q: after %v comes %q, %v; want record %d of %d", text, p, rec.Text, err, i+1, len(places))
			}
		}
		std := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
		std.Comma, std.FieldsPerRecord = rune(comma), -1
		want, err := std.ReadAll()
		if err != nil || strings.Contains(text, "\r") || faulty {
			return
		}
		if len(want) > 0 {
			want = want[1:]
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Fatalf("%q: %q, and encoding/csv reads %q", text, got, want)
		}
	})
}
