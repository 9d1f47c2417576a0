package keyadvice

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestWhatMayBelongToPeople: one visitor's address is no evidence, many are.
func TestWhatMayBelongToPeople(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	quad := func(a, b, c, d int) []string { return []string{fmt.Sprintf("%d.%d.%d.%d", a, b, c, d)} }
	for _, tt := range []struct {
		name string
		of   func(i int) []string
		want string
	}{
		{"random numbers of 15 digits", func(int) []string { return []string{fmt.Sprint(int(1e14) + rng.IntN(9e14))} }, ""},
		{"visitors", func(int) []string { return quad(11+rng.IntN(80), rng.IntN(256), rng.IntN(256), rng.IntN(256)) }, "personal-data/info"},
		{"visitors of a site", func(i int) []string {
			return append([]string{sites[i%10]}, quad(11+rng.IntN(80), rng.IntN(256), rng.IntN(256), rng.IntN(256))...)
		}, "personal-data/info"},
		{"machines of a private network", func(int) []string { return quad(10, rng.IntN(256), rng.IntN(256), rng.IntN(256)) }, ""},
		{"machines behind a carrier's", func(int) []string { return quad(100, 64+rng.IntN(64), rng.IntN(256), rng.IntN(256)) }, ""},
		{"servers of one owner", func(int) []string { return quad(52, 28+rng.IntN(4), rng.IntN(256), rng.IntN(256)) }, ""},
		{"versions", func(i int) []string { return quad(3+rng.IntN(4), rng.IntN(20), rng.IntN(30), i%250) }, ""},
		{"versions of browsers", func(i int) []string { return quad(100+rng.IntN(30), 0, 4000+i, rng.IntN(200)) }, ""},
	} {
		es := entities(500, 1, tt.of)
		if got := causes(inputWith(es)); got != tt.want {
			t.Errorf("%s, such as %s: %q, want %q", tt.name, es[0].Path, got, tt.want)
		}
		if got := causes(inputWith(es[:10])); got != "" {
			t.Errorf("ten %s: %q", tt.name, got)
		}
	}
	many := entities(5000, 1, func(int) []string { return quad(80+rng.IntN(4), rng.IntN(256), rng.IntN(256), rng.IntN(256)) })
	if got := causes(inputWith(many)); got != "personal-data/info" {
		t.Errorf("visitors who share networks: %q", got)
	}
	es := entities(40, 1, func(i int) []string {
		if i == 7 {
			return []string{"anna@example.com"}
		}
		return quad(11+rng.IntN(80), rng.IntN(256), rng.IntN(256), rng.IntN(256))
	})
	if got := causes(inputWith(es)); got != "personal-data/critical" {
		t.Errorf("visitors and a mail address: %q", got)
	}
	for _, f := range run(inputWith(es[8:])) {
		if f.Field != "k1" || strings.Contains(f.Found, es[8].Parts[0]) {
			t.Errorf("advice %+v", f)
		}
	}
}
