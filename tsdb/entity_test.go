package tsdb_test

import (
	"encoding"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/tsdb"
)

var (
	_ encoding.TextMarshaler   = tsdb.Entity{}
	_ encoding.TextUnmarshaler = (*tsdb.Entity)(nil)
)

// TestTextOfEntities: an entity that a program stores as text is read back unchanged, whatever its parts are.
func TestTextOfEntities(t *testing.T) {
	for want, e := range map[string]tsdb.Entity{
		"":                             {},
		"berlin/roof-7":                tsdb.NewEntity("berlin", "roof-7"),
		"Bremen Nord/Küche #2/a+b":     tsdb.NewEntity("Bremen Nord", "Küche #2", "a+b"),
		"50%25/a%2Fb":                  tsdb.NewEntity("50%", "a/b"),
		"%00%0A%7F/%FF\u00e9":          tsdb.NewEntity("\x00\n\x7f", "\xff\u00e9"),
		"/":                            tsdb.NewEntity("", ""),
		"a//":                          tsdb.NewEntity("a", "", ""),
		"*":                            tsdb.NewEntity("*"),
		"%2523":                        tsdb.NewEntity("%23"),
		"\ufffd":                       tsdb.NewEntity("\ufffd"),
		"https:%2F%2Fexample.com%2F/x": tsdb.NewEntity("https://example.com/", "x"),
	} {
		if got := e.String(); got != want {
			t.Errorf("the text of %q is %q, want %q", e.Parts(), got, want)
		}
		var back tsdb.Entity
		if err := back.UnmarshalText([]byte(want)); err != nil || back != e {
			t.Errorf("%q is read as %q, %v; want %q", want, back.Parts(), err, e.Parts())
		}
	}
}

func TestTextOfPrefixes(t *testing.T) {
	for want, p := range map[string]tsdb.Prefix{
		"":         {},
		"*":        tsdb.AllEntities(),
		"%2A":      tsdb.NewPrefix("*"),
		"*/*":      tsdb.NewPrefix("*", "*"),
		"a%2Fb/c ": tsdb.NewPrefix("a/b", "c "),
	} {
		if got := p.String(); got != want {
			t.Errorf("the text of %q is %q, want %q", p.Parts(), got, want)
		}
	}
}

func TestTextThatIsNoEntity(t *testing.T) {
	for _, text := range []string{"%", "a/%2", "%zz/b", "100%/b"} {
		e := tsdb.NewEntity("kept")
		err := e.UnmarshalText([]byte(text))
		if bad, ok := errors.AsType[*tsdb.InvalidError](err); !ok || !errors.Is(err, tsdb.ErrInvalid) || bad.Field != "entity" {
			t.Errorf("%q as entity: %v, want an InvalidError of the field", text, err)
		}
		if e != tsdb.NewEntity("kept") {
			t.Errorf("refused text changes its target to %v", e)
		}
	}
}

func FuzzTextOfEntities(f *testing.F) {
	f.Add("berlin", "roof-7", "")
	f.Add("*", "a/b%2F", "\x00\xff#")
	f.Fuzz(func(t *testing.T, a, b, text string) {
		for _, parts := range [][]string{{a}, {a, b}, {a, b, text}} {
			e := tsdb.NewEntity(parts...)
			out, err := json.Marshal(map[tsdb.Entity]tsdb.Entity{e: e})
			if err != nil {
				t.Fatal(err)
			}
			var back map[tsdb.Entity]tsdb.Entity
			if err := json.Unmarshal(out, &back); err != nil || len(back) != 1 || back[e] != e {
				t.Errorf("%q is %s in JSON, and read as %v, %v", parts, out, back, err)
			}
			if !utf8.ValidString(e.String()) || strings.ContainsFunc(e.String(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("the text of %q is %q", parts, e)
			}
		}
		var e, again tsdb.Entity
		if e.UnmarshalText([]byte(text)) == nil && (again.UnmarshalText([]byte(e.String())) != nil || again != e) {
			t.Errorf("%q is read as %q, whose text %q is read as %q", text, e.Parts(), e, again.Parts())
		}
	})
}

func TestJSONOfPoints(t *testing.T) {
	type value struct {
		TempC float64 `json:"temp_c"`
	}
	at := time.Date(2026, 7, 1, 12, 0, 0, 5_000_000, time.UTC)
	for want, p := range map[string]tsdb.Point[value]{
		`{"entity":"berlin/roof-7","time":"2026-07-01T12:00:00.005Z","value":{"temp_c":21.5}}`: {
			Entity: tsdb.NewEntity("berlin", "roof-7"), Time: at, Value: value{21.5},
		},
		`{"entity":"a%2Fb","time":"2026-07-01T12:00:00.005Z","id":"e-1","value":{"temp_c":0}}`: {
			Entity: tsdb.NewEntity("a/b"), Time: at, ID: "e-1",
		},
		`{"entity":"","time":"0001-01-01T00:00:00Z","value":{"temp_c":0}}`: {},
	} {
		got, err := json.Marshal(p)
		if err != nil || string(got) != want {
			t.Errorf("%+v is %s, %v; want %s", p, got, err, want)
		}
		var back tsdb.Point[value]
		if err := json.Unmarshal([]byte(want), &back); err != nil || back != p {
			t.Errorf("%s is read as %+v, %v", want, back, err)
		}
	}
	var p tsdb.Point[value]
	if err := json.Unmarshal([]byte(`{"entity":"100%"}`), &p); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("a bad entity in JSON: %v, want ErrInvalid", err)
	}
	page, err := json.Marshal(tsdb.Page[value]{Points: []tsdb.Point[value]{}})
	if err != nil || string(page) != `{"points":[]}` {
		t.Errorf("a page without points is %s, %v", page, err)
	}
}

func ExampleEntity_MarshalText() {
	var e tsdb.Entity
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.TextVar(&e, "device", tsdb.Entity{}, "the `device` to print")
	if err := flags.Parse([]string{"-device", "berlin/rack 3%2F4"}); err != nil {
		panic(err)
	}
	fmt.Printf("%q\n", e.Parts())

	out, err := json.Marshal(map[tsdb.Entity]int{e: 7, tsdb.NewEntity("berlin", "roof-7"): 3})
	fmt.Println(string(out), err)
	// Output:
	// ["berlin" "rack 3/4"]
	// {"berlin/rack 3%2F4":7,"berlin/roof-7":3} <nil>
}

func ExamplePoint_json() {
	p := tsdb.Point[Reading]{Entity: tsdb.NewEntity("berlin", "roof-7"), Time: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), Value: Reading{TempC: 21.5}}
	out, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(out))

	var back tsdb.Point[Reading]
	err = json.Unmarshal(out, &back)
	fmt.Println(back == p, err)
	// Output:
	// {"entity":"berlin/roof-7","time":"2026-07-01T12:00:00Z","value":{"temp_c":21.5,"humidity":0}}
	// true <nil>
}
