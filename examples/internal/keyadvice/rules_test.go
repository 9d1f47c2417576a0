package keyadvice

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// entities returns n entities of tenant acme with r points a second each. of returns the parts of entity i.
func entities(n int, r float64, of func(i int) []string) []entity {
	out := make([]entity, n)
	for i := range out {
		parts := of(i)
		path := rowkey.Path(parts...)
		out[i] = entity{Tenant: "acme", Path: path, Parts: parts, Key: len("acme#readings#") + len(path) + 20, Rate: r}
	}
	return out
}

func inputWith(in []entity) input {
	d := input{Dataset: "readings", Family: "keep", Qualifier: "p:f64", Families: 2, MaxPayload: 10 << 20, Share: 1, Entities: in}
	for i := range in[0].Parts {
		d.Fields = append(d.Fields, fmt.Sprintf("k%d", i+1))
	}
	return d
}

func one(format string) func(int) []string {
	return func(i int) []string { return []string{fmt.Sprintf(format, i)} }
}

func hexOf(i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d", i))
	return hex.EncodeToString(sum[:12])
}

// causes returns the findings as cause/severity.
func causes(in input) string {
	var out []string
	for _, f := range run(in) {
		out = append(out, f.Cause+"/"+f.Severity)
	}
	return strings.Join(out, " ")
}

func day(i int) time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i) }

// uuid returns a UUID of version 4 or, with a time, 7.
func uuid(version string, ms int64, i int) string {
	h := hexOf(i) + hexOf(-i-1)
	if ms > 0 {
		h = fmt.Sprintf("%012x", ms) + h[12:]
	}
	return h[:8] + "-" + h[8:12] + "-" + version + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
}

var sites = []string{"berlin", "hamburg", "lyon", "oslo", "porto", "quito", "riga", "split", "turin", "vienna"}

func TestKeysThatNothingIsWrongWith(t *testing.T) {
	for name, of := range map[string]func(int) []string{
		"site and device":          func(i int) []string { return []string{sites[i%10], fmt.Sprintf("roof-%d", i/10)} },
		"site and padded device":   func(i int) []string { return []string{sites[i%10], fmt.Sprintf("%06d", i/10)} },
		"numbered devices":         one("device-%05d"),
		"numbered devices, bare":   one("device-%d"),
		"reversed digits":          func(i int) []string { return []string{reversed(uint64(i))} },
		"hashes":                   func(i int) []string { return []string{hexOf(i)} },
		"random UUIDs":             func(i int) []string { return []string{uuid("4", 0, i)} },
		"UUIDs by time":            func(i int) []string { return []string{uuid("7", day(i).UnixMilli(), i)} },
		"a customer's meters":      func(i int) []string { return []string{uuid("4", 0, i/5), fmt.Sprintf("meter-%d", i%5)} },
		"one meter a customer":     func(i int) []string { return []string{uuid("4", 0, i), "meter"} },
		"device and metric":        func(i int) []string { return []string{hexOf(i / 3), []string{"temp", "load", "rpm"}[i%3]} }, // several below each
		"few regions, many of all": func(i int) []string { return []string{sites[i%3], uuid("4", 0, i)} },
		"serial numbers":           func(i int) []string { return []string{fmt.Sprint(6_000_000_000_000_000 + uint64(i)*7_919_000_003)} },
		"hardware addresses": func(i int) []string {
			h := hexOf(i)
			return []string{h[:2] + ":" + h[2:4] + ":" + h[4:6] + ":" + h[6:8] + ":" + h[8:10] + ":" + h[10:12]}
		},
		"domains, reversed": func(i int) []string { return []string{"com.example." + hexOf(i)[:6]} },
		"random numbers":    func(i int) []string { return []string{fmt.Sprint(uint64(i+1) * 0x9E3779B97F4A7C15)} },
		"names of many words": func(i int) []string {
			return []string{fmt.Sprintf("floor%02droom%02dsensor%03d", i%30, i%7, i), sites[i%10]}
		},
		"years of models": func(i int) []string { return []string{fmt.Sprint(2015 + i%12), hexOf(i)} },
	} {
		for _, n := range []int{1, 3, 30, 1000} {
			for _, r := range []float64{0, 1, 4} {
				if r == 0 && name == "UUIDs by time" {
					continue // the newest may be the busiest
				}
				if got := causes(inputWith(entities(n, r, of))); got != "" {
					t.Errorf("%s: %d entities, %v points a second each: %s; want nothing", name, n, r, got)
				}
			}
		}
	}
}

func reversed(n uint64) string {
	b := fmt.Appendf(nil, "%020d", n)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

// TestNumbersThatOnlyLookLikeTimes: numbers of British meters, serial numbers and map cells look like times. But times
// in the past get no more writes.
func TestNumbersThatOnlyLookLikeTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for name, of := range map[string]func(int) []string{
		"meter points":   func(int) []string { return []string{fmt.Sprintf("14%011d", rng.Int64N(1e11))} },
		"serial numbers": func(int) []string { return []string{fmt.Sprint(1_500_000_000 + rng.IntN(5e8))} },
		"S2 cells":       func(int) []string { return []string{fmt.Sprint(uint64(0x132f6)<<44 + rng.Uint64N(1<<44))} },
		"behind a site":  func(i int) []string { return []string{sites[i%10], fmt.Sprintf("14%011d", rng.Int64N(1e11))} },
	} {
		for _, r := range []float64{0.001, 4} {
			es := entities(500, r, of)
			es[7].Rate *= 5
			if got := causes(inputWith(es)); got != "" {
				t.Errorf("%s, %v points a second each: %s; want nothing", name, r, got)
			}
		}
	}
	for name, of := range map[string]func(int) []string{
		"hours": func(i int) []string { return []string{fmt.Sprint(day(0).Unix() + 3600*int64(i)), "x"} },
		"hours counted down": func(i int) []string {
			return []string{fmt.Sprint(1<<63 - 1 - day(0).UnixNano() + 3600e9*int64(500-i)), "x"}
		},
	} {
		es := entities(500, 0.001, of)
		es[499].Rate = 50 // the current hour
		es[498].Rate = 2
		if got := causes(inputWith(es)); got != "time-first/warning" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestTimesWithoutGaps: one time a second makes consecutive numbers, as a counter does.
func TestTimesWithoutGaps(t *testing.T) {
	seconds := func(i int) []string { return []string{fmt.Sprint(day(0).Unix() + int64(i)), "x"} }
	for _, tt := range []struct {
		name   string
		n      int
		rate   float64
		newest float64 // of the last value; 0 for equal rates
		of     func(int) []string
		share  float64
		want   string
	}{
		{name: "unknown rates", n: 500, of: seconds, want: "time-first/warning"},
		{name: "a few, unknown rates", n: 10, of: seconds, want: "time-first/warning"},
		{name: "milliseconds", n: 500, of: func(i int) []string { return []string{fmt.Sprint(day(0).UnixMilli() + int64(i))} }, want: "time-first/warning"},
		{name: "counted down", n: 500, of: func(i int) []string { return []string{fmt.Sprint(1<<63 - 1 - day(0).UnixNano() - int64(i))} }, want: "time-first/warning"},
		{name: "some of all hours", n: 500, of: func(i int) []string { return []string{fmt.Sprint(day(0).Unix() + 3600*int64(i))} }, share: 0.001, want: "time-first/warning"},
		{name: "the newest busy", n: 500, rate: 0.001, newest: 50, of: seconds, want: "time-first/warning"},
		{name: "the newest busy, of a few", n: 30, rate: 0.001, newest: 50, of: seconds, want: "time-first/warning"},
		{name: "ids that write alike", n: 500, rate: 1, of: seconds, want: "sequential/info"},
		{name: "a few ids that write alike", n: 30, rate: 1, of: seconds, want: "sequential/info"},
		{name: "ten ids with rates", n: 10, rate: 1, of: seconds, want: ""},
		{name: "ids behind a site", n: 500, of: func(i int) []string { return append([]string{sites[i%10]}, seconds(i)...) }, want: ""},
		{name: "other ids of ten digits", n: 500, of: one("60%08d"), want: "sequential/info"},
	} {
		es := entities(tt.n, tt.rate, tt.of)
		if tt.newest > 0 {
			es[tt.n-1].Rate = tt.newest
		}
		in := inputWith(es)
		if tt.share > 0 {
			in.Share = tt.share
		}
		if got := causes(in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestUnevenLoadIsNoSequence: load that is uneven by chance is no evidence about the order of ids.
func TestUnevenLoadIsNoSequence(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		es := entities(500, 0, one("device-%05d"))
		for i := range es {
			es[i].Rate = 0.1 + rng.ExpFloat64()
		}
		es[485].Rate, es[495].Rate = 95, 95 // two among the newest that are not yet hot
		if got := causes(inputWith(es)); got != "" {
			t.Fatalf("%s; want nothing", got)
		}
	}
}

func TestCauses(t *testing.T) {
	newest := func(es []entity, n int, r float64) []entity { // the last n are the busiest
		for i := range es[len(es)-n:] {
			es[len(es)-n+i].Rate = r
		}
		return es
	}
	shuffled := func(es []entity) []entity {
		rand.New(rand.NewPCG(3, 4)).Shuffle(len(es), func(i, j int) { es[i], es[j] = es[j], es[i] })
		return es
	}
	payload := func(es []entity, n int) []entity {
		for i := range es {
			es[i].Payload = n
		}
		return es
	}
	plain := func(n int, r float64) []entity {
		return entities(n, r, func(i int) []string { return []string{sites[i%10], fmt.Sprintf("roof-%d", i)} })
	}
	for _, tt := range []struct {
		name string
		in   input
		with func(*input)
		want string
	}{
		{name: "days first", in: inputWith(entities(30, 0, func(i int) []string { return []string{day(i % 3).Format("2006-01-02"), hexOf(i)} })), want: "time-first/warning"},
		{name: "hours first", in: inputWith(entities(30, 1, func(i int) []string {
			return []string{day(0).Add(time.Duration(i) * time.Hour).Format(time.RFC3339), "x"}
		})), want: "time-first/warning"},
		{name: "compact days", in: inputWith(entities(30, 1, func(i int) []string { return []string{day(i).Format("20060102")} })), want: "time-first/warning"},
		{name: "days first, as people write them", in: inputWith(entities(30, 0, func(i int) []string { return []string{day(i).Format("02-01-2006"), hexOf(i)} })), want: "time-first/warning"},
		{name: "with dots", in: inputWith(entities(30, 0, func(i int) []string { return []string{day(i).Format("02.01.2006"), hexOf(i)} })), want: "time-first/warning"},
		{name: "with the month in front", in: inputWith(entities(30, 0, func(i int) []string { return []string{day(i).Format("01/02/2006"), hexOf(i)} })), want: "time-first/warning"},
		{name: "serials of a year", in: inputWith(entities(30, 0, func(i int) []string { return []string{fmt.Sprintf("2026-%03d", i), hexOf(i)} })), want: ""},
		{name: "parts in three groups", in: inputWith(entities(30, 0, func(i int) []string { return []string{fmt.Sprintf("21-%02d-20%02d", i, i), hexOf(i)} })), want: ""},
		{name: "dates of long ago", in: inputWith(entities(30, 0, func(i int) []string { return []string{fmt.Sprintf("21-11-%04d", 1000+i), hexOf(i)} })), want: ""},
		{name: "weeks first", in: inputWith(entities(30, 1, func(i int) []string { return []string{fmt.Sprintf("2026-W%02d", i/3+1), hexOf(i)} })), want: "time-first/warning"},
		{name: "seconds first, busy", in: inputWith(entities(30, 300, func(i int) []string { return []string{fmt.Sprint(day(i).Unix())} })), want: "time-first/critical"},
		{name: "milliseconds", in: inputWith(entities(30, 1, func(i int) []string { return []string{fmt.Sprint(day(i).UnixMilli()), "x"} })), want: "time-first/warning"},
		{name: "times counted down", in: inputWith(entities(30, 1, func(i int) []string { return []string{fmt.Sprint(1<<63 - 1 - day(i).UnixNano()), "x"} })), want: "time-first/warning"},
		{name: "days behind sites, idle", in: inputWith(entities(30, 1, func(i int) []string { return []string{sites[i%2], day(i).Format("2006-01-02"), hexOf(i)} })), want: ""},
		{name: "days behind sites, busy", in: inputWith(entities(30, 100, func(i int) []string { return []string{sites[i%2], day(i).Format("2006-01-02"), hexOf(i)} })), want: "time-first/warning"},
		{name: "days first, salted", in: inputWith(entities(30, 1, func(i int) []string { return []string{day(i).Format("2006-01-02")} })), with: func(in *input) { in.Salts = 10 }, want: ""},

		{name: "counter", in: inputWith(entities(1000, 0, one("%08d"))), want: "sequential/info"},
		{name: "counter in any order, even", in: inputWith(shuffled(entities(1000, 1, one("%08d")))), want: "sequential/info"},
		{name: "counter, salted", in: inputWith(entities(1000, 1, one("%08d"))), with: func(in *input) { in.Salts = 10 }, want: ""},
		{name: "counter, the newest busy", in: inputWith(shuffled(newest(entities(1000, 0.1, one("%08d")), 100, 10))), want: "sequential/warning"},
		{name: "counter, the newest too busy", in: inputWith(shuffled(newest(entities(1000, 0.1, one("%08d")), 100, 60))), want: "sequential/critical"},
		{name: "counter, sampled", in: inputWith(entities(1000, 0, func(i int) []string { return []string{fmt.Sprintf("%08d", i*50)} })), with: func(in *input) { in.Share = 0.02 }, want: "sequential/info"},
		{name: "users, the newest busy", in: inputWith(newest(entities(1000, 0.1, one("user-%06d")), 100, 10)), want: "sequential/warning"},
		{name: "numbers, the newest busy", in: inputWith(newest(entities(1000, 0.1, one("%d")), 100, 10)), want: "sequential/warning unpadded-number/info"},
		{name: "behind a site, the newest busy", in: inputWith(newest(entities(1000, 0.1, func(i int) []string { return []string{"berlin", fmt.Sprintf("%06d", i)} }), 100, 20)), want: "sequential/warning"},
		{name: "UUIDs by time, unknown rates", in: inputWith(entities(100, 0, func(i int) []string { return []string{uuid("7", day(i).UnixMilli(), i)} })), with: func(in *input) { in.Arrival = true }, want: "sequential/info"},
		{name: "words that come in order", in: inputWith(entities(60, 1, func(i int) []string { return []string{fmt.Sprintf("%c%c", 'a'+i/26, 'a'+i%26)} })), with: func(in *input) { in.Arrival = true }, want: "sequential/info"},
		{name: "orders that come in order", in: inputWith(entities(100, 1, one("order-%06d"))), with: func(in *input) { in.Arrival = true }, want: "sequential/info"},
		{name: "words in any order", in: inputWith(shuffled(entities(60, 1, func(i int) []string { return []string{fmt.Sprintf("%c%c", 'a'+i/26, 'a'+i%26)} }))), with: func(in *input) { in.Arrival = true }, want: ""},

		{name: "one of many", in: inputWith(newest(plain(100, 1), 1, 100)), want: "hot-entity/info"},
		{name: "one of many, fast", in: inputWith(newest(plain(100, 1), 1, 2000)), want: "hot-entity/warning"},
		{name: "one alone, too fast", in: inputWith(plain(1, 8000)), want: "hot-entity/critical"},
		{name: "many that are equal and fast", in: inputWith(plain(8, 1000)), want: ""},
		{name: "three that are equal", in: inputWith(plain(3, 400)), want: ""},
		{name: "two alone, too fast", in: inputWith(plain(2, 6000)), want: "hot-entity/critical"},
		{name: "one of a small sample", in: inputWith(newest(plain(100, 1), 1, 100)), with: func(in *input) { in.Share = 0.1 }, want: ""},
		{name: "heads", in: inputWith(payload(plain(10, 30), 100)), with: func(in *input) { in.Head = 5 }, want: "hot-head/critical"},
		{name: "heads of small points", in: inputWith(payload(plain(10, 30), 10)), with: func(in *input) { in.Head = 5 }, want: "hot-head/warning"},
		{name: "calm heads", in: inputWith(payload(plain(10, 5), 10)), with: func(in *input) { in.Head = 5 }, want: ""},

		{name: "a tenant above a server", in: inputWith(plain(1000, 30)), want: "busy-tenant/info"},
		{name: "by its share", in: inputWith(plain(1000, 0.6)), with: func(in *input) { in.Share = 0.02 }, want: "busy-tenant/info"},
		{name: "salted already", in: inputWith(plain(1000, 30)), with: func(in *input) { in.Salts = 6 }, want: ""},
		{name: "few metrics first", in: inputWith(entities(900, 7, func(i int) []string { return []string{[]string{"temp", "load", "rpm"}[i%3], hexOf(i)} })), want: "few-first-values/info"},
		{name: "few metrics first, busy", in: inputWith(entities(900, 20, func(i int) []string { return []string{[]string{"temp", "load", "rpm"}[i%3], hexOf(i)} })), want: "few-first-values/warning busy-tenant/info"},

		{name: "unpadded", in: inputWith(entities(120, 1, func(i int) []string { return []string{sites[i%10], fmt.Sprint(i)} })), want: "unpadded-number/info"},
		{name: "a hash before the site", in: inputWith(entities(100, 1, func(i int) []string { return []string{hexOf(i), sites[i%10]} })), want: "hashed-part/warning"},
		{name: "mail", in: inputWith(entities(30, 1, func(i int) []string { return []string{sites[i%10], fmt.Sprintf("anna%c@example.com", 'a'+i)} })), want: "personal-data/critical"},
		{name: "a card number", in: inputWith(entities(1, 1, func(int) []string { return []string{"berlin", "4111 1111 1111 1111"} })), want: "personal-data/critical"},
		{name: "a card", in: inputWith(entities(1, 1, func(int) []string { return []string{"4111111111111111"} })), want: "personal-data/critical"},
		{name: "a card among names", in: inputWith(entities(5, 1, func(i int) []string { return []string{[]string{"anna", "bert", "4111111111111111", "carl", "dora"}[i]} })), want: "personal-data/critical"},
		{name: "serials, one of which passes for a card", in: inputWith(entities(40, 1, func(i int) []string { return []string{fmt.Sprint(4_111_111_111_111_111 + uint64(i)*97)} })), want: ""},
		{name: "a tenant's name", in: inputWith(plain(3, 1)), with: func(in *input) {
			for i := range in.Entities {
				in.Entities[i].Tenant = "4111-1111-1111-1111"
			}
		}, want: "personal-data/critical"},

		{name: "long keys", in: inputWith(entities(30, 1, func(i int) []string { return []string{sites[i%10] + strings.Repeat("/path", 60), hexOf(i)} })), want: "long-key/info"},
		{name: "one very long key", in: inputWith(entities(1, 1, func(int) []string { return []string{strings.Repeat("path/", 500)} })), want: "long-key/warning"},
		{name: "one too long key", in: inputWith(entities(1, 1, func(int) []string { return []string{strings.Repeat("path/", 900)} })), want: "long-key/critical"},
		{name: "long names", in: inputWith(payload(plain(30, 1), 8)), with: func(in *input) { in.Dataset, in.Family = strings.Repeat("d", 32), strings.Repeat("f", 30) }, want: "long-names/info"},
		{name: "long names, larger payloads", in: inputWith(payload(plain(30, 1), 300)), with: func(in *input) { in.Dataset, in.Family = strings.Repeat("d", 32), strings.Repeat("f", 30) }, want: ""},
		{name: "payload near the limit of merges", in: inputWith(payload(plain(30, 1), 5000)), with: func(in *input) { in.MaxPayload = 8 << 10 }, want: "large-payload/warning"},
		{name: "payload over the limit", in: inputWith(payload(plain(30, 1), 11<<20)), want: "large-payload/critical"},
		{name: "families", in: inputWith(plain(3, 1)), with: func(in *input) { in.Families = 60 }, want: "many-families/warning"},
		{name: "too many families", in: inputWith(plain(3, 1)), with: func(in *input) { in.Families = 101 }, want: "many-families/critical"},
		{name: "a wide prefix", in: inputWith(entities(200, 0, func(i int) []string { return []string{"berlin", hexOf(i)} })), with: func(in *input) { in.Share = 0.01 }, want: "wide-prefix/info"},
		{name: "a wide prefix with heads", in: inputWith(entities(200, 0, func(i int) []string { return []string{"berlin", hexOf(i)} })), with: func(in *input) { in.Share, in.Head = 0.01, 1 }, want: ""},
	} {
		if tt.with != nil {
			tt.with(&tt.in)
		}
		if got := causes(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q\n%+v", tt.name, got, tt.want, run(tt.in))
		}
	}
}

// TestTextsNameWhatTheyMean: figures and names in the texts come from the sample, and no personal data is shown.
func TestTextsNameWhatTheyMean(t *testing.T) {
	es := entities(100, 1, func(i int) []string { return []string{sites[i%10], fmt.Sprintf("anna%02d@example.com", i)} })
	es[7].Rate = 6000
	for _, f := range run(inputWith(es)) {
		text := f.Found + f.Why + f.Remedy
		if strings.Contains(text, "anna") {
			t.Errorf("%s shows a mail address: %s", f.Cause, text)
		}
		if f.Cause == causeHotEntity && (!strings.Contains(text, "6000 points a second") || !strings.Contains(text, "98%")) {
			t.Errorf("the hot entity is described as: %s", text)
		}
		if f.Found == "" || f.Why == "" || f.Remedy == "" || strings.Contains(text, "%!") {
			t.Errorf("%s has an empty text: %+v", f.Cause, f)
		}
	}
}

// TestEqualTenants: of two tenants with the same figures, the advice always names the same one.
func TestEqualTenants(t *testing.T) {
	a := entities(30, 1, func(i int) []string { return []string{day(i).Format("2006-01-02")} })
	b := entities(30, 1, func(i int) []string { return []string{day(i).Format("2006-01-02")} })
	for i := range b {
		b[i].Tenant = "beta"
	}
	first := run(inputWith(append(b, a...)))
	for range 50 {
		if again := run(inputWith(append(a, b...))); len(again) != 1 || again[0] != first[0] {
			t.Fatalf("advice %+v, at first %+v", again, first)
		}
	}
}

// TestOneEntityOnSeveralLines: its rates are added, with the same result in any order.
func TestOneEntityOnSeveralLines(t *testing.T) {
	of := func(rates ...float64) entity {
		es := entities(len(rates), 0, func(int) []string { return []string{"x"} })
		for i, r := range rates {
			es[i].Rate = r
		}
		all := merged(es)
		if len(all) != 1 {
			t.Fatalf("%+v, want one entity", all)
		}
		return all[0]
	}
	if a, b := of(0.1, 0.2, 0.3), of(0.3, 0.2, 0.1); a.Rate != b.Rate || a.Rate < 0.59 || a.Rate > 0.61 {
		t.Errorf("rates %v and %v, want them equal", a.Rate, b.Rate)
	}
}

func TestNoEntities(t *testing.T) {
	for _, families := range []int{2, 101} {
		in := input{Dataset: "d", Fields: []string{"k"}, Share: 1, Families: families, Arrival: true, Head: 3}
		if got := len(run(in)); got != families/101 {
			t.Errorf("%d families and no entities: %d findings", families, got)
		}
	}
}

// FuzzOrder: no sample causes a panic, and the order of a sample does not change the advice.
func FuzzOrder(f *testing.F) {
	f.Add("a|1\nb|2", uint16(3), int64(1), 1.0)
	f.Add("2026-01-01|x\n2026-01-02|x", uint16(0), int64(7), 9999.5)
	f.Add("00000001\n00000002\n00000003", uint16(200), int64(9), 0.01)
	f.Add("||\n%#\n\xff", uint16(77), int64(2), 1e12)
	f.Fuzz(func(t *testing.T, text string, spread uint16, seed int64, most float64) {
		if !(most >= 0 && most <= 1e12) {
			return
		}
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		lines := strings.Split(text, "\n")
		n := len(lines) + int(spread)%300
		es := entities(n, 0, func(i int) []string {
			parts := strings.SplitN(lines[i%len(lines)], "|", 3)
			for len(parts) < 3 {
				parts = append(parts, fmt.Sprint(i))
			}
			return parts
		})
		for i := range es {
			es[i].Rate, es[i].Payload = most*rng.Float64(), int(spread)
			es[i].Tenant = []string{"acme", "beta", "c"}[rng.IntN(3)]
		}
		in := inputWith(es)
		in.Salts, in.Head, in.Share = int(spread)%7, int(spread)%2, 1/float64(1+spread%9)
		first := run(in)
		rng.Shuffle(n, func(i, j int) { es[i], es[j] = es[j], es[i] })
		if again := run(in); !reflect.DeepEqual(first, again) {
			t.Fatalf("in another order:\n%+v\nat first:\n%+v", again, first)
		}
		in.Arrival = true
		run(in)
	})
}
