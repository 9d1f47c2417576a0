package tsdb_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestLimitsAreCheckedBeforeAnythingIsSent: every call rejects invalid input before it sends anything, and names the
// input, its value and the limit.
func TestLimitsAreCheckedBeforeAnythingIsSent(t *testing.T) {
	ns := readings(t, tsdb.SchemaOptions{})
	ms := readings(t, tsdb.SchemaOptions{Precision: tsdb.Milliseconds})
	text, err := tsdb.Define("text", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, text)
	ctx := t.Context()
	long := tsdb.NewEntity("berlin", strings.Repeat("x", 4096))
	for _, tt := range []struct {
		name string
		call func() error
		want []string
	}{
		{
			"time before 1970", func() error { return ns.For(store, acme).Put(ctx, roof, time.Unix(-1, 0), reading{}) },
			[]string{"time is 1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z to 2262-04-11T23:47:16.854775807Z"},
		},
		{"the zero time", func() error { return ns.For(store, acme).Put(ctx, roof, time.Time{}, reading{}) }, []string{"time is 0001-01-01T00:00:00Z"}},
		{"time past nanoseconds", func() error {
			return ns.For(store, acme).Put(ctx, roof, time.Date(2262, 4, 12, 0, 0, 0, 0, time.UTC), reading{})
		}, []string{"time is 2262-04-12T00:00:00Z"}},
		{
			"time past milliseconds", func() error {
				return ms.For(store, acme).Put(ctx, roof, time.UnixMilli(math.MaxInt64/1000+1), reading{})
			},
			[]string{"time is +294247-01-10T04:00:54.776Z", "1970-01-01T00:00:00Z to 9999-12-31T23:59:59.999Z"},
		},
		{"time of Get", func() error {
			_, err := ns.For(store, acme).Get(ctx, roof, time.Unix(-1, 0))
			return err
		}, []string{"time is 1969-12-31T23:59:59Z"}},
		{"time of Delete", func() error { return ns.For(store, acme).Delete(ctx, roof, time.Unix(-1, 0)) }, []string{"time is 1969-12-31T23:59:59Z"}},
		{"key over 4 KiB", func() error { return ns.For(store, acme).Put(ctx, long, start, reading{}) }, []string{"row key is 4137 bytes", "at most 4096 bytes"}},
		{"key over 4 KiB read", func() error {
			_, err := ns.For(store, acme).Latest(ctx, long)
			return err
		}, []string{"row key is 4137 bytes"}},
		{
			"cell over 10 MiB", func() error { return text.For(store, acme).Put(ctx, roof, start, strings.Repeat("x", 10<<20+1)) },
			[]string{"payload is 10485761 bytes", "at most 10485760 bytes"},
		},
		{
			"too few parts", func() error { return ns.For(store, acme).Put(ctx, tsdb.NewEntity("berlin"), start, reading{}) },
			[]string{`entity is "berlin" with 1 part`, "exactly 2, one for each key field (site, device)"},
		},
		{"too many parts", func() error {
			_, err := ns.For(store, acme).LatestN(ctx, tsdb.NewEntity("a", "b", "c"), 1)
			return err
		}, []string{`entity is "a/b/c" with 3 parts`}},
		{"the zero entity", func() error {
			_, err := ns.For(store, acme).DeleteRange(ctx, tsdb.Entity{}, tsdb.AllTime())
			return err
		}, []string{"entity is empty with 0 parts"}},
		{"empty part", func() error {
			_, err := ns.For(store, acme).DeleteRange(ctx, tsdb.NewEntity("berlin", ""), tsdb.AllTime())
			return err
		}, []string{"key field device is empty"}},
		{"invalid UTF-8", func() error {
			_, err := ns.For(store, acme).AsOf(ctx, tsdb.NewEntity("ber\xfflin", "x"), start)
			return err
		}, []string{`key field site is "ber\xfflin"`, "valid UTF-8"}},
		{"invalid UTF-8 in a payload", func() error { return text.For(store, acme).Put(ctx, roof, start, "\xff") }, []string{"UTF-8"}},
		{"zero prefix", func() error {
			_, err := ns.For(store, acme).DeletePrefix(ctx, tsdb.Prefix{})
			return err
		}, []string{"prefix is empty", "AllEntities"}},
		{"prefix that is an entity", func() error {
			_, err := ns.For(store, acme).DeletePrefix(ctx, tsdb.NewPrefix("berlin", "roof-7"))
			return err
		}, []string{`prefix is "berlin/roof-7" with 2 parts`, "fewer than the 2 key fields"}},
		{"prefix with an empty part", func() error {
			_, err := ns.For(store, acme).DeletePrefix(ctx, tsdb.NewPrefix(""))
			return err
		}, []string{"prefix is empty"}},
		{"negative n", func() error {
			_, err := ns.For(store, acme).LatestN(ctx, roof, -1)
			return err
		}, []string{"n is -1"}},
		{"negative limit", func() error {
			for _, err := range ns.For(store, acme).Range(ctx, roof, tsdb.AllTime(), tsdb.Limit(-5)) {
				return err
			}
			return nil
		}, []string{"limit is -5", "0 or more"}},
		{"nil option", func() error {
			for _, err := range ns.For(store, acme).Range(ctx, roof, tsdb.AllTime(), nil) {
				return err
			}
			return nil
		}, []string{"read option 0 is nil"}},
		{"JSON that cannot be", func() error { return ns.For(store, acme).Put(ctx, roof, start, reading{math.NaN()}) }, []string{"NaN"}},
	} {
		err := tt.call()
		if err == nil {
			t.Errorf("%s is accepted", tt.name)
			continue
		}
		if !errors.Is(err, tsdb.ErrInvalid) && !errors.Is(err, codec.ErrEncode) {
			t.Errorf("%s: %v matches neither ErrInvalid nor codec.ErrEncode", tt.name, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", tt.name, err, want)
			}
		}
	}
	if calls := conn.Counts().Calls; len(calls) > 0 {
		t.Errorf("rejected input was sent: %v", calls)
	}
	if points, err := ns.For(store, acme).LatestN(ctx, roof, 0); points != nil || err != nil {
		t.Errorf("LatestN(0) = %v, %v", points, err)
	}
}

func TestDefineRefuses(t *testing.T) {
	define := func(name string, k tsdb.KeyFields, o tsdb.SchemaOptions) error {
		_, err := tsdb.Define(name, k, codec.JSON[reading](), o)
		return err
	}
	k := tsdb.Key("site", "device")
	week := gc.MaxAge(7 * 24 * time.Hour)
	for _, tt := range []struct {
		name string
		err  error
		is   error
		want string
	}{
		{"empty name", define("", k, tsdb.SchemaOptions{}), tsdb.ErrInvalid, "dataset is empty"},
		{"name with a delimiter", define("a#b", k, tsdb.SchemaOptions{}), tsdb.ErrInvalid, "byte 0x23"},
		{"no key", define("r", tsdb.KeyFields{}, tsdb.SchemaOptions{}), tsdb.ErrInvalid, "0 fields"},
		{"nine fields", define("r", tsdb.Key("1", "2", "3", "4", "5", "6", "7", "8", "9"), tsdb.SchemaOptions{}), tsdb.ErrInvalid, "9 fields"},
		{"a field twice", define("r", tsdb.Key("a", "a"), tsdb.SchemaOptions{}), tsdb.ErrInvalid, "a name of its own"},
		{"salts", define("r", k, tsdb.SchemaOptions{Salts: 101}), tsdb.ErrInvalid, "salts is 101"},
		{"precision", define("r", k, tsdb.SchemaOptions{Precision: 7}), tsdb.ErrInvalid, "Precision is Precision(7)"},
		{"negative lateness", define("r", k, tsdb.SchemaOptions{MaxLate: -1}), tsdb.ErrInvalid, "MaxLate"},
		{"versions", define("r", k, tsdb.SchemaOptions{Retention: gc.Class{Name: "v", Policy: gc.MaxVersions(2)}}), invalid.ErrVersions, "maxversions=2"},
		{"class name", define("r", k, tsdb.SchemaOptions{Retention: gc.Class{Name: "_sys", Policy: week}}), invalid.ErrPolicy, "_sys"},
		{"class without a name", define("r", k, tsdb.SchemaOptions{Retention: gc.Class{Policy: week}}), invalid.ErrPolicy, "class is empty"},
		{"fraction of a second", define("r", k, tsdb.SchemaOptions{Retention: gc.Class{Name: "x", Policy: gc.MaxAge(time.Millisecond)}}), invalid.ErrPolicy, "second"},
		{"too many places", define("r", k, tsdb.SchemaOptions{FormerClasses: manyClasses(64)}), tsdb.ErrInvalid, "65 times 1; want at most 64"},
		{"class twice", define("r", k, tsdb.SchemaOptions{Retention: d90, FormerClasses: []gc.Class{d90}}), tsdb.ErrInvalid, "each class once"},
	} {
		if !errors.Is(tt.err, tt.is) || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: %v, want %v that says %q", tt.name, tt.err, tt.is, tt.want)
		}
	}
	if _, err := tsdb.Define[reading]("r", k, nil, tsdb.SchemaOptions{}); !errors.Is(err, codecerr.ErrInvalid) {
		t.Errorf("Define without a codec: %v, want codec.ErrInvalid", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("MustDefine does not panic although Define fails")
		}
	}()
	tsdb.MustDefine("", k, codec.JSON[reading](), tsdb.SchemaOptions{})
}

func manyClasses(n int) (out []gc.Class) {
	for i := range n {
		out = append(out, gc.Class{Name: fmt.Sprintf("c%d", i), Policy: gc.Never()})
	}
	return out
}
