package instant_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
)

// TestEveryTimeHasAText reads back the text and the JSON of times at the edges of calendars.
func TestEveryTimeHasAText(t *testing.T) {
	kathmandu := time.FixedZone("", (5*60+45)*60)
	for _, tt := range []struct {
		at   time.Time
		want string
	}{
		{time.Date(2026, 6, 1, 12, 0, 0, 5e8, time.UTC), "2026-06-01T12:00:00.5Z"},
		{time.Date(2026, 6, 1, 12, 0, 0, 0, kathmandu), "2026-06-01T12:00:00+05:45"},
		{instant.Last, "9999-12-31T23:59:59.999999999Z"},
		{instant.Last.Add(1), "+010000-01-01T00:00:00Z"},
		{instant.Last.In(kathmandu), "+010000-01-01T05:44:59.999999999+05:45"},
		{time.Date(58803, 2, 28, 1, 2, 3, 4, time.UTC), "+058803-02-28T01:02:03.000000004Z"},
		{time.Date(58804, 2, 29, 0, 0, 0, 0, time.UTC), "+058804-02-29T00:00:00Z"},
		{time.UnixMilli(math.MaxInt64 / 1000).UTC(), "+294247-01-10T04:00:54.775Z"},
		{time.Time{}, "0001-01-01T00:00:00Z"},
	} {
		if got := instant.Text(tt.at); got != tt.want {
			t.Errorf("Text(%v) = %s, want %s", tt.at, got, tt.want)
		}
		if back, err := instant.Parse(tt.want); err != nil || !back.Equal(tt.at) {
			t.Errorf("Parse(%s) = %v, %v; want %v", tt.want, back, err, tt.at)
		}
		out, err := json.Marshal(instant.Time{Time: tt.at})
		var back instant.Time
		if err != nil || string(out) != `"`+tt.want+`"` || json.Unmarshal(out, &back) != nil || !back.Equal(tt.at) {
			t.Errorf("the JSON of %v is %s, %v, and is read as %v", tt.at, out, err, back)
		}
	}
}

func TestParseRefusesOtherTexts(t *testing.T) {
	for _, text := range []string{
		"", "+", "+2026-06-01T12:00:00Z", "+002026-06-01T12:00:00Z", "+009999-12-31T23:59:59Z", "+05880x-01-01T00:00:00Z", "+058803-02-29T00:00:00Z",
		"+0000058803-01-01T00:00:00Z", "+058803", "+058803-01-01", "58803-01-01T00:00:00Z", "+99999999999-01-01T00:00:00Z", "-000001-01-01T00:00:00Z",
	} {
		if at, err := instant.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v; want an error", text, at)
		}
	}
	at := instant.Time{Time: time.Unix(0, 0)}
	if err := json.Unmarshal([]byte("null"), &at); err != nil || at.Unix() != 0 {
		t.Errorf("null is read as %v, %v", at, err)
	}
	for _, data := range []string{`1`, `{}`, `""`, `"now"`} {
		if err := json.Unmarshal([]byte(data), &at); err == nil {
			t.Errorf("the JSON %s is read as %v; want an error", data, at)
		}
	}
}
