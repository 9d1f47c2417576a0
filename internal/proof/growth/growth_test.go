package growth_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/growth"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

const mib = 1 << 20

// run returns samples of two hours whose heap follows from the number of the sample and its share of the run.
func run(n int, heap func(i int, share float64) float64) []growth.Sample {
	samples := make([]growth.Sample, n)
	for i := range samples {
		share := float64(i) / float64(n)
		samples[i].At = time.Duration(share * float64(2*time.Hour))
		samples[i].Values = [5]int64{int64(heap(i, share)), 50, 20, 30, 0}
	}
	return samples
}

// Only a heap that keeps growing is found, however noisy it is.
func TestJudge(t *testing.T) {
	testkit.Plain(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := func(bytes float64) float64 { return rnd.NormFloat64() * bytes }
	for name, tt := range map[string]struct {
		heap  func(i int, share float64) float64
		grows bool
	}{
		"flat":                    {func(int, float64) float64 { return 30 * mib }, false},
		"flat with noise":         {func(int, float64) float64 { return 30*mib + noise(mib) }, false},
		"slow growth with noise":  {func(_ int, s float64) float64 { return 30*mib + 3*mib*s + noise(mib/2) }, true},
		"growth below the bound":  {func(_ int, s float64) float64 { return 30*mib + 0.4*mib*s + noise(mib/10) }, false},
		"fast growth":             {func(_ int, s float64) float64 { return 30*mib + 500*mib*s + noise(8*mib) }, true},
		"shrinking":               {func(_ int, s float64) float64 { return 90*mib - 60*mib*s + noise(mib) }, false},
		"warm-up":                 {func(_ int, s float64) float64 { return 30*mib*min(1, 5*s) + noise(mib/2) }, false},
		"a step in the middle":    {func(_ int, s float64) float64 { return 30*mib + 15*mib*math.Round(s) + noise(mib/2) }, false},
		"a step early":            {func(_ int, s float64) float64 { return 30*mib + 15*mib*math.Floor(min(1, s+0.6)) + noise(mib/2) }, false},
		"a step at the end":       {func(_ int, s float64) float64 { return 30*mib + 15*mib*math.Floor(s+0.12) + noise(mib/2) }, false},
		"a cache that fills":      {func(_ int, s float64) float64 { return 30*mib + 60*mib*min(1, s/0.6) + noise(mib/2) }, false},
		"peaks":                   {func(i int, _ float64) float64 { return 30*mib + float64(i%7/6)*40*mib + noise(mib) }, false},
		"growth below peaks":      {func(i int, s float64) float64 { return 30*mib + 8*mib*s + float64(i%7/6)*40*mib + noise(mib/2) }, true},
		"growth in steps":         {func(_ int, s float64) float64 { return 30*mib + mib*math.Floor(12*s) + noise(mib/4) }, true},
		"sawtooth":                {func(i int, _ float64) float64 { return 30*mib + float64(i%20)*mib }, false},
		"growth that is then off": {func(_ int, s float64) float64 { return 30*mib + 20*mib*max(0, 0.6-s) + noise(mib/2) }, false},
	} {
		for _, n := range []int{200, 5000} {
			verdicts := growth.Judge(run(n, tt.heap), growth.Default)
			if len(verdicts) != 5 {
				t.Fatalf("%s: %d verdicts, want 5", name, len(verdicts))
			}
			text, grows := growth.Report(verdicts)
			if grows != tt.grows || verdicts[growth.Heap].Grows != tt.grows {
				t.Errorf("%s, %d samples: grows %v, want %v%s", name, n, grows, tt.grows, text)
			}
			if tt.grows != strings.Contains(text, "heap: GROWS") {
				t.Errorf("%s: the report is%s", name, text)
			}
		}
	}
}

// Noise alone is found in less than one of 200 runs.
func TestJudgeRarelyErrs(t *testing.T) {
	testkit.Plain(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	wrong := 0
	for range 400 {
		bounds := growth.Default
		bounds[growth.Heap] = growth.Bound{} // no growth at all is allowed
		_, grows := growth.Report(growth.Judge(run(60, func(int, float64) float64 { return 30*mib + rnd.NormFloat64()*mib }), bounds))
		if grows {
			wrong++
		}
	}
	if wrong > 2 {
		t.Errorf("%d of 400 runs without growth are judged to grow", wrong)
	}
}

// What cannot be judged is said: too few samples, all at one time, a quantity that the system does not report, a run
// that is too short for its noise.
func TestJudgeSaysWhatItCannot(t *testing.T) {
	few := run(20, func(_ int, s float64) float64 { return 900 * mib * s })
	for name, samples := range map[string][]growth.Sample{"none": nil, "one": few[:1], "15 after the warm-up": few} {
		text, grows := growth.Report(growth.Judge(samples, growth.Default))
		if grows || !strings.Contains(text, "too few to judge, want 16") {
			t.Errorf("%s: grows %v%s", name, grows, text)
		}
	}
	still := run(40, func(i int, _ float64) float64 { return float64(i) * mib })
	for i := range still {
		still[i].At = time.Second
	}
	if text, grows := growth.Report(growth.Judge(still, growth.Default)); grows {
		t.Errorf("all at one time%s", text)
	}
	unknown := run(40, func(int, float64) float64 { return mib })
	unknown[30].Values[growth.Files] = -1
	if text, _ := growth.Report(growth.Judge(unknown, growth.Default)); strings.Contains(text, "files") || !strings.Contains(text, "channels") {
		t.Errorf("an unknown number of files%s", text)
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	short := run(40, func(int, float64) float64 { return 30*mib + rnd.NormFloat64()*mib })
	for i := range short {
		short[i].At = time.Duration(i) * time.Second
	}
	if text, grows := growth.Report(growth.Judge(short, growth.Default)); grows || !strings.Contains(text, "no growth is proven; growth above ") {
		t.Errorf("a short run%s", text)
	}
}
