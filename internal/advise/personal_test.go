package advise

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// imei returns 14 digits with the check digit behind them.
func imei(n int) string {
	b := fmt.Appendf(nil, "%014d0", n)
	for c := byte('0'); c <= '9'; c++ {
		if b[14] = c; isIMEI(string(b)) {
			return string(b)
		}
	}
	return ""
}

func TestIMEI(t *testing.T) {
	for s, want := range map[string]bool{
		"490154203237518": true, "490154203237519": false, "49015420323751": false, "4901542032375180": false, "49015420323751a": false,
	} {
		if isIMEI(s) != want {
			t.Errorf("%s is an IMEI: %v, want %v", s, !want, want)
		}
	}
}

// TestWhatMayBelongToPeople: of numbers of phones and addresses of visitors one alone tells nothing, many of a kind do.
func TestWhatMayBelongToPeople(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	quad := func(a, b, c, d int) []string { return []string{fmt.Sprintf("%d.%d.%d.%d", a, b, c, d)} }
	for _, tt := range []struct {
		name string
		of   func(i int) []string
		want string
	}{
		{"IMEIs", func(int) []string { return []string{imei(35_000_000_000_000 + rng.IntN(1e12))} }, "personal-data/info"},
		{"IMEIs of one model, in a row", func(i int) []string { return []string{imei(35_693_803_000_000 + i)} }, "personal-data/info"},
		{"IMEIs behind a site", func(i int) []string { return []string{sites[i%10], imei(35_000_000_000_000 + rng.IntN(1e12))} }, "personal-data/info"},
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
		if got := causes(input(es)); got != tt.want {
			t.Errorf("%s, such as %s: %q, want %q", tt.name, es[0].Path, got, tt.want)
		}
		if got := causes(input(es[:10])); got != "" {
			t.Errorf("ten %s: %q", tt.name, got)
		}
	}
	many := entities(5000, 1, func(int) []string { return quad(80+rng.IntN(4), rng.IntN(256), rng.IntN(256), rng.IntN(256)) })
	if got := causes(input(many)); got != "personal-data/info" {
		t.Errorf("visitors of whom several have one network: %q", got)
	}
	es := entities(40, 1, func(i int) []string {
		if i == 7 {
			return []string{"anna@example.com"}
		}
		return []string{imei(35_000_000_000_000 + rng.IntN(1e12))}
	})
	if got := causes(input(es)); got != "personal-data/critical" {
		t.Errorf("IMEIs and a mail address: %q", got)
	}
	for _, f := range Run(input(es[8:])) {
		if f.Field != "k1" || strings.Contains(f.Found, es[8].Parts[0]) {
			t.Errorf("%+v", f)
		}
	}
}
