package gc

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/gate"
)

func TestKeepsAllOf(t *testing.T) {
	for _, tt := range []struct {
		p, q        Policy
		forth, back bool
	}{
		{Never(), Never(), true, true},
		{Never(), MaxAge(day), true, false},
		{MaxAge(30 * day), MaxAge(7 * day), true, false},
		{MaxAge(7 * day), Any(MaxAge(7*day), All(MaxAge(30*day), MaxVersions(3))), true, true},
		{MaxVersions(3), MaxVersions(2), true, false},
		{MaxAge(7 * day), MaxVersions(2), false, false},
		{MaxAge(7 * day), Any(MaxAge(7*day), MaxVersions(2)), true, false},
		{All(MaxAge(7*day), MaxVersions(2)), MaxAge(7 * day), true, false},
		{MaxAge(-1), MaxAge(day), false, false},
		{MaxAge(-1), MaxAge(-1), false, false},
	} {
		if got := gate.Of(tt.p).KeepsAllOf(tt.q); got != tt.forth {
			t.Errorf("%v keeps all of %v: %v", tt.p, tt.q, got)
		}
		if got := gate.Of(tt.q).KeepsAllOf(tt.p); got != tt.back {
			t.Errorf("%v keeps all of %v: %v", tt.q, tt.p, got)
		}
	}
}

// FuzzKeepsAllOf compares with the wanted rules of both policies, for all ages and numbers of newer cells that can
// differ.
func FuzzKeepsAllOf(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 64 {
		seed := make([]byte, 1+random.IntN(40))
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, b := ruleFrom(&data, 3), ruleFrom(&data, 3)
		p, q := a.policy(), b.policy()
		want := true
		for newer := range 10 {
			for tick := range 20 {
				age := time.Duration(tick) * time.Second / 2
				want = want && (!a.removes(age, newer) || b.removes(age, newer))
			}
		}
		if got := gate.Of(p).KeepsAllOf(q); got != want {
			t.Errorf("%v keeps all of %v: %v; %v and %v say %v", p, q, got, a.text(), b.text(), want)
		}
		if p.Equal(q) != (gate.Of(p).KeepsAllOf(q) && gate.Of(q).KeepsAllOf(p)) {
			t.Errorf("%v and %v keep all of each other, or are equal, but not both", p, q)
		}
	})
}
