package keyadvice

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

const (
	base32hex = "0123456789abcdefghijklmnopqrstuv"
)

// randoms returns n random digits from an alphabet.
func randoms(rng *rand.Rand, n int, digits string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = digits[rng.IntN(len(digits))]
	}
	return string(b)
}

// text returns bytes in an alphabet of digits, most significant first, as KSUIDs are written.
func text(b []byte, digits string, size int) string {
	n, base, d := new(big.Int).SetBytes(b), big.NewInt(int64(len(digits))), new(big.Int)
	out := make([]byte, size)
	for i := range out {
		n.DivMod(n, base, d)
		out[size-1-i] = digits[d.Int64()]
	}
	return string(out)
}

// after returns four bytes of a time in seconds, followed by n random bytes.
func after(rng *rand.Rand, seconds int64, n int) []byte {
	b := []byte{byte(seconds >> 24), byte(seconds >> 16), byte(seconds >> 8), byte(seconds)}
	for range n {
		b = append(b, byte(rng.IntN(256)))
	}
	return b
}

// snowflake returns an id of 42 bits of milliseconds since an epoch, 10 bits of a machine and 12 bits of a sequence.
func snowflake(ms, epoch int64, machine, sequence int) string {
	return fmt.Sprint((ms-epoch)<<22 | int64(machine)<<12 | int64(sequence))
}

const (
	twitterEpoch = 1_288_834_974_657
	discordEpoch = 1_420_070_400_000
)

// TestIDsByTime: new ids sort after old ones, in any alphabet.
func TestIDsByTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	at := func(i int) int64 { return day(i).UnixMilli() + rng.Int64N(86_400_000) }
	for name, of := range map[string]func(int) []string{
		"snowflakes of one machine": func(i int) []string { return []string{snowflake(at(i), twitterEpoch, 5, 0)} },
		"snowflakes of machine 0":   func(i int) []string { return []string{snowflake(at(i), twitterEpoch, 0, rng.IntN(3))} },
		"snowflakes of many":        func(i int) []string { return []string{snowflake(at(i), twitterEpoch, rng.IntN(1024), rng.IntN(8))} },
		"snowflakes that count on":  func(i int) []string { return []string{snowflake(at(i), twitterEpoch, 32+rng.IntN(4), i*37%4096)} },
		"snowflakes of 18 digits":   func(i int) []string { return []string{snowflake(at(i-4000), twitterEpoch, rng.IntN(20), rng.IntN(3))} },
		"Discord's":                 func(i int) []string { return []string{snowflake(at(i), discordEpoch, 1+rng.IntN(3), rng.IntN(30))} },
		"KSUIDs":                    func(i int) []string { return []string{text(after(rng, at(i)/1000-1_400_000_000, 16), base62, 27)} },
		"UUIDs of version 6": func(i int) []string {
			h := fmt.Sprintf("%015x", uint64(at(i))*10_000+122_192_928_000_000_000)
			return []string{h[:8] + "-" + h[8:12] + "-6" + h[12:] + uuid("4", 0, i)[18:]}
		},
	} {
		for _, n := range []int{8, 500} {
			es := entities(n, 0, of)
			if got := causes(inputWith(es)); got != "sequential/info" {
				t.Errorf("%d %s, such as %s: %q", n, name, es[0].Path, got)
			}
		}
		es := entities(500, 1, of)
		if got := causes(inputWith(es)); got != "" {
			t.Errorf("%s with equal rates: %q", name, got)
		}
		for i := 400; i < 500; i++ {
			es[i].Rate = 10
		}
		if got := causes(inputWith(es)); got != "sequential/warning" {
			t.Errorf("%s with busy newest ids: %q", name, got)
		}
	}
}

// TestSnowflakesThatGrowADigit: the newest ids are the largest numbers, whatever their first digit.
func TestSnowflakesThatGrowADigit(t *testing.T) {
	es := entities(500, 1, func(i int) []string { // in May 2018 ids grew to 19 digits
		return []string{snowflake(1_527_253_553_758+int64(i-250)*86_400_000, twitterEpoch, 3, 0)}
	})
	for i := 450; i < 500; i++ {
		es[i].Rate = 20
	}
	if got := causes(inputWith(es)); got != "sequential/warning" {
		t.Errorf("with busy newest ids: %q", got)
	}
}

// TestKSUID uses a published KSUID.
func TestKSUID(t *testing.T) {
	if !isTimeID("0ujtsYcgvSTl8PAuAdqWYSMnLOv") { // from the library's README, made in 2017
		t.Error("the KSUID is not recognised")
	}
}

// TestIDsThatAreNotByTime: some random numbers and texts begin like ids by time, but not nearly all.
func TestIDsThatAreNotByTime(t *testing.T) {
	testkit.Plain(t)
	rng := rand.New(rand.NewPCG(9, 10))
	within := func(low, high uint64) func(int) []string {
		return func(int) []string { return []string{fmt.Sprint(low + rng.Uint64N(high-low))} }
	}
	cell := func(level int) func(int) []string { // of an S2 map, in West Africa
		last := uint64(1) << (2 * (30 - level))
		return func(int) []string {
			return []string{fmt.Sprint((uint64(0x0f)<<56|rng.Uint64N(1<<54))&-(2*last) | last)}
		}
	}
	for name, of := range map[string]func(int) []string{
		"random numbers of 17 digits":         within(1e16, 1e17),
		"random numbers of 18 digits":         within(1e17, 1e18),
		"random numbers of 18 and 19 digits":  within(1e17, 9e18),
		"random numbers up to 3 trillion":     within(1e18, 3e18),
		"random base62":                       func(int) []string { return []string{randoms(rng, 27, base62)} },
		"random base32hex":                    func(int) []string { return []string{randoms(rng, 20, base32hex)} },
		"random base32hex, aligned":           func(int) []string { return []string{randoms(rng, 19, base32hex) + "g"} },
		"random digits, as long as KSUIDs":    func(int) []string { return []string{"1" + randoms(rng, 26, base62[:10])} },
		"padded counters, as long as KSUIDs":  func(int) []string { return []string{fmt.Sprintf("%027d", rng.IntN(1e9))} },
		"padded numbers, as long as xids":     func(int) []string { return []string{fmt.Sprintf("%020d", rng.IntN(1e9))} },
		"parcels":                             func(int) []string { return []string{fmt.Sprintf("34012345%09d%d", rng.IntN(1e4), rng.IntN(10))} },
		"parcels of a large firm":             func(int) []string { return []string{fmt.Sprintf("3401234%010d%d", rng.IntN(1e10), rng.IntN(10))} },
		"numbers with many zeros":             func(int) []string { return []string{fmt.Sprint((1e5 + rng.IntN(9e5)) * 1e12)} },
		"random UUIDs that say version 6":     func(i int) []string { return []string{uuid("6", 0, i)} },
		"S2 cells of level 12":                cell(12),
		"S2 cells of level 19":                cell(19),
		"S2 cells of level 20":                cell(20),
		"S2 cells of level 21":                cell(21),
		"S2 cells of level 23":                cell(23),
		"S2 cells of level 30":                cell(30),
		"numbers with a year":                 func(int) []string { return []string{fmt.Sprintf("2026%014d", rng.IntN(1e14))} },
		"numbers with a day and a row number": func(i int) []string { return []string{fmt.Sprintf("202611%02d%010d", i%28+1, rng.IntN(1e6))} },
	} {
		for range 20 {
			for _, n := range []int{30, 500} {
				if strings.Contains(name, "cell") {
					n *= 3 // more, because some values repeat
				}
				es := entities(n, 0, of)
				if got := causes(inputWith(es)); got != "" {
					t.Fatalf("%d %s, such as %s: %q", n, name, es[0].Path, got)
				}
			}
		}
	}
	// Whole hours in nanoseconds are times, although their last bits are all zero.
	es := entities(500, 0, func(i int) []string { return []string{fmt.Sprint(day(0).UnixNano() + int64(i)*3600e9)} })
	if got := causes(inputWith(es)); got != "time-first/warning" {
		t.Errorf("hours in nanoseconds: %q", got)
	}
}
