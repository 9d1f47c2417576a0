package fieldtest

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// sample returns an hour of twelve trucks in line protocol, a line of each kind every ten seconds. As from the field,
// some lines come late, and some lack a field, the fleet, or the truck.
func sample() string {
	var b strings.Builder
	begin := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	var late []string
	for i := range 360 {
		at := begin.Add(time.Duration(i) * 10 * time.Second).UnixNano()
		for n := range 12 {
			n64, hour := float64(n), float64(i)/360
			tags := fmt.Sprintf(",name=truck_%d,fleet=%s,model=G-2000", n, []string{"East", "North", "South", "West"}[n%4])
			switch k := i*12 + n; {
			case i == 0: // with all tags, so that each truck has a fleet
			case k%211 == 7:
				tags = ",model=G-2000"
			case k%97 == 5:
				tags = fmt.Sprintf(",name=truck_%d,model=G-2000", n)
			}
			velocity := 50 + 30*math.Sin(6*hour+n64)
			if n%5 == 3 && i >= 290 { // truck_3 and truck_8 have parked
				velocity = 0.4
			}
			readings := fmt.Sprintf("latitude=%.5f,longitude=%.5f,velocity=%.1f", 52+n64/10+hour/2, 13-n64/10+hour/3, velocity)
			if (i+n)%23 == 22 { // also the last line of truck_8
				readings = fmt.Sprintf("longitude=%.5f,velocity=%.1f", 13-n64/10+hour/3, velocity)
			}
			diagnostics := fmt.Sprintf("load_capacity=5000,fuel_state=%.3f,current_load=%d", max(0, 1-hour*(0.3+n64/16)), 200*n+10*(i%50))
			if (i+n)%29 == 17 {
				diagnostics = fmt.Sprintf("load_capacity=5000,current_load=%d", 200*n+10*(i%50))
			}
			for _, l := range []string{
				fmt.Sprintf("readings%s %s %d\n", tags, readings, at), fmt.Sprintf("diagnostics%s %s,status=0i %d\n", tags, diagnostics, at),
			} {
				if (i+n)%41 == 3 && i > 0 && i < 355 {
					late = append(late, l)
					continue
				}
				b.WriteString(l)
			}
		}
		if i%6 == 5 {
			b.WriteString(strings.Join(late, ""))
			late = nil
		}
	}
	return b.String()
}
