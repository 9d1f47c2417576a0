package retention_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb/retention"
)

func TestZ(t *testing.T) {
	for _, name := range []string{"uniform", "bursts", "big"} {
		w := newWorld(t, 30*aDay)
		if name == "bursts" {
var ages []time.Duration
for i := range 90000 {
ages = append(ages, time.Duration(i%8)*7*aDay+time.Duration(i)*time.Hour/90000)
}
w.fill(t, "acme", 20, ages)
} else if name == "uniform" {
			w.fill(t, "acme", 100, uniform(90_000, 0, 45*aDay))
		} else {
			w.fill(t, "big", 50, uniform(80_000, 0, 45*aDay))
			for i := range 100 {
				w.fill(t, fmt.Sprintf("small-%03d", i), 3, uniform(100, 0, 40*aDay))
			}
		}
		var tot, gone float64
		for _, tr := range w.of {
			tot += tr.bytes
			for _, a := range tr.ages {
				if a > 30*aDay {
					gone += tr.each
				}
			}
		}
		for _, rows := range []int{1500, 3000, 8000} {
			var z [3][]float64
			var se [3]float64
			const n = 40
			for seed := range uint64(n) {
				f := w.forecast(t, retention.ForecastOptions{Rows: rows, Seed: seed})
				d, _ := f.Drops("d30", gc.MaxAge(20*aDay))
				_ = d
				z[0] = append(z[0], (f.Whole.Bytes.Value-tot)/f.Whole.Bytes.Error)
				z[1] = append(z[1], (f.Whole.ExpiredBytes.Value-gone)/f.Whole.ExpiredBytes.Error)
				h := f.Holdings[0]
				z[2] = append(z[2], (h.Bytes.Value-w.of[h.Tenant.String()].bytes)/h.Bytes.Error)
				se[0] += f.Whole.Bytes.Error / tot / n
				se[1] += f.Whole.ExpiredBytes.Error / gone / n
				se[2] += h.Bytes.Error / w.of[h.Tenant.String()].bytes / n
			}
			for i := range z {
				in1, in2, in3, m := 0, 0, 0, 0.0
				for _, x := range z[i] {
					a := math.Abs(x)
					if a <= 1 {
						in1++
					}
					if a <= 2 {
						in2++
					}
					if a <= 3 {
						in3++
					}
					m += x / n
				}
				fmt.Printf("%s rows=%d fig=%d within1=%d within2=%d within3=%d of %d mean z %.2f, se %.0f%%\n", name, rows, i, in1, in2, in3, n, m, se[i]*100)
			}
		}
	}
}
