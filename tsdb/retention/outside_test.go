package retention_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestChangeStreamFromOutside: a plan with a change stream that WithChangeStream refuses is refused before anything is changed. The last
// number is a multiple of 2^64 nanoseconds: it would overflow to 0, which disables the stream.
func TestChangeStreamFromOutside(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90)))
	p, err := plan(t, store, define(t, "readings", days("d90", 90))).WithChangeStream(24 * time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	const is = `"change_stream_s":86400`
	if !strings.Contains(string(text), is) {
		t.Fatalf("got %s, want %s in it", text, is)
	}
	for _, seconds := range []string{"-1", "1", "86399", "604801", "9223372036854775807", "36028797018963968"} {
		forged := strings.Replace(string(text), is, `"change_stream_s":`+seconds, 1)
		if _, err := retention.ReadPlan(strings.NewReader(forged)); !errors.Is(err, retention.ErrInvalid) || !strings.Contains(err.Error(), seconds) {
			t.Errorf("%s seconds: got %v, want a refusal that names them", seconds, err)
		}
	}
	for _, seconds := range []string{"0", "86400", "604800"} {
		forged := strings.Replace(string(text), is, `"change_stream_s":`+seconds, 1)
		if _, err := retention.ReadPlan(strings.NewReader(forged)); err != nil {
			t.Errorf("%s seconds: %v", seconds, err)
		}
	}
}

// TestColdAfterFromOutside: a plan whose ages no schema can declare is refused, and changes nothing.
func TestColdAfterFromOutside(t *testing.T) {
	s := define(t, "readings", days("d90", 90))
	for _, ages := range []string{`{"d90":"1s"}`, `{"d90":""}`, `{"d90":"1d || 2d"}`} {
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		text, err := json.Marshal(plan(t, store, s))
		if err != nil {
			t.Fatal(err)
		}
		forged := strings.Replace(string(text), `"declared":[{`, `"declared":[{"cold_after":`+ages+`,`, 1)
		p, err := retention.ReadPlan(strings.NewReader(forged))
		if err != nil {
			continue
		}
		rep, err := p.Apply(t.Context(), store, retention.ApplyOptions{})
		if err == nil || len(rep.Applied) > 0 {
			t.Errorf("%s: got %v and %v, want a refusal", ages, rep, err)
		}
		if after, err := json.Marshal(plan(t, store, s)); err != nil || string(after) != string(text) {
			t.Errorf("%s: the table has changed: %v\n%s", ages, err, after)
		}
	}
}
