package gc

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/gate"
	"github.com/tidemark-go/tidemark/internal/instant"
)

// checkPolicy checks what holds for every valid policy, whatever its source.
func checkPolicy(t *testing.T, p Policy) {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatalf("%v: Validate: %v, want nil", p, err)
	}
	for i, step := range p.terms {
		if step == (term{}) || i > 0 && (step.age >= p.terms[i-1].age || step.versions <= p.terms[i-1].versions) {
			t.Fatalf("%v is not in normal form", p)
		}
	}

	parsed, err := Parse(p.String())
	if err != nil || !parsed.Equal(p) || parsed.String() != p.String() {
		t.Errorf("Parse(%q) = %q, %v; the round trip through text changes the policy", p, parsed, err)
	}
	text, err := p.MarshalText()
	if err != nil {
		t.Errorf("%v.MarshalText: %v", p, err)
	}
	unmarshalled := MaxAge(12345 * time.Second)
	if err := unmarshalled.UnmarshalText(text); err != nil || !unmarshalled.Equal(p) {
		t.Errorf("UnmarshalText(%q) = %v, %v", text, unmarshalled, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"never", "maxage=30d", "maxversions=2", "maxage=30d || (maxage=3d && maxversions=100)", "maxage = 5h or maxversions=7",
		"((maxage=90m))", "maxage=1000ms and maxversions=2 or maxage=1s", "maxage=106751d", "maxage=0d", "maxversions=",
		"maxage=5x", "(", "maxage=1d)", "a && b", "&&", "|", "never || maxage=1d", "maxage=9999999999999999999d", "\u3000never",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			if !p.Equal(Never()) || err.Error() == "" {
				t.Errorf("Parse(%q) = %v with an error", text, p)
			}
			return
		}
		checkPolicy(t, p)
	})
}

func FuzzPolicyText(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0x0f, 0x0a, 0x0b})
	random := rand.New(rand.NewPCG(1, 2))
	for range 64 {
		seed := make([]byte, 1+random.IntN(40))
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		meant := ruleFrom(&data, 4)
		p := meant.policy()
		checkPolicy(t, p)
		checkMeaning(t, meant, p)
		checkPoints(t, meant, p)
		if text := meant.text(); !meant.has("never") && len(text) <= maxText {
			parsed, err := Parse(text)
			if err != nil || !parsed.Equal(p) {
				t.Errorf("Parse(%q) = %v, %v; want %v", text, parsed, err, p)
			}
		}
	})
}

// checkMeaning compares what p removes with the wanted rule, for all ages and numbers of newer cells that can differ.
func checkMeaning(t *testing.T, meant rule, p Policy) {
	t.Helper()
	for newer := range 10 {
		for tick := range 20 {
			age := time.Duration(tick) * time.Second / 2
			if got, want := gate.Of(p).Removes(age, newer), meant.removes(age, newer); got != want {
				t.Fatalf("%v removes a cell of %v below %d newer ones: %v; %v says %v", p, age, newer, got, meant.text(), want)
			}
		}
	}
}

// checkPoints compares the cutoff with the wanted rule, for a cell that is alone in its column.
func checkPoints(t *testing.T, meant rule, p Policy) {
	t.Helper()
	now := time.Date(2026, 3, 4, 5, 6, 7, 123_456_789, time.UTC)
	cutoff, bounded, err := gate.Of(p).Cutoff(now)
	if err != nil {
		if !meant.has("versions") {
			t.Errorf("%v has no versions: PointAge: %v, want nil", p, err)
		}
		return
	}
	for second := range 10 {
		for millisecond := -2; millisecond <= 2; millisecond++ {
			cell := now.Truncate(time.Millisecond).Add(-time.Duration(second)*time.Second + time.Duration(millisecond)*time.Millisecond)
			if got, want := bounded && cell.Before(cutoff), meant.removes(now.Sub(cell), 0); got != want {
				t.Fatalf("under %v a point of %v before now is expired: %v; want %v", p, now.Sub(cell), got, want)
			}
		}
	}
}

func FuzzCutoff(f *testing.F) {
	f.Add(int64(1_790_000_000_123_456_789), uint32(86400), int64(0))
	f.Add(int64(0), uint32(1), int64(1))
	f.Add(int64(-62_135_596_801), uint32(4_000_000_000), int64(-1))
	f.Fuzz(func(t *testing.T, nanos int64, seconds uint32, offset int64) {
		now, age := time.Unix(0, nanos), time.Duration(seconds)*time.Second
		cutoff := instant.Cutoff(now, age)
		if cutoff.Nanosecond()%1e6 != 0 {
			t.Fatalf("Cutoff(%v, %v) = %v, which is not a cell's time", now, age, cutoff)
		}
		// A point's cell has the point's time rounded down to the millisecond, so only a few times near the cutoff
		// matter.
		point := now.Add(-age).Add(time.Duration(offset % 3_000_000))
		cell := point.Truncate(time.Millisecond)
		if got, want := cell.Before(cutoff), now.Sub(cell) > age; got != want {
			t.Errorf("cell %v at %v with age %v is expired: %v; the service says %v", cell, now, age, got, want)
		}
		if cell.Before(cutoff) != point.Before(cutoff) {
			t.Errorf("point %v and its cell %v are on different sides of the cutoff %v", point, cell, cutoff)
		}
	})
}
