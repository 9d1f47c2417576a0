package web

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// TestColours: people who do not see red, green or blue tell the twelve colours of each theme apart, and each is seen
// on its card.
func TestColours(t *testing.T) {
	text, err := os.ReadFile("assets/theme.css")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`--(card|series-\d+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)`).FindAllStringSubmatch(string(text), -1)
	if len(found) != 13 {
		t.Fatalf("%d colours, want a card and 12, each of two themes", len(found))
	}
	for theme, of := range map[string]int{"light": 2, "dark": 3} {
		card, lines := rgbOf(found[0][of]), found[1:]
		for i, one := range lines {
			if c := contrast(rgbOf(one[of]), card); c < 3 {
				t.Errorf("%s: %s has a contrast of %.2f, want 3", theme, one[1], c)
			}
			for _, other := range lines[:i] {
				for sight, matrix := range sights {
					if d := distance(perceived(rgbOf(one[of]), matrix), perceived(rgbOf(other[of]), matrix)); d < leastDistance {
						t.Errorf("%s: with %s, %s and %s differ by %.3f, want %.3f", theme, sight, one[1], other[1], d, leastDistance)
					}
				}
			}
		}
	}
}

// leastDistance is how much two colours differ at least, in OKLab: 0.02 can just be seen side by side.
const leastDistance = 0.09

// sights are how people see linear colours (Machado and others, 2009, at full strength).
var sights = map[string][3][3]float64{
	"all cones":      {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"no red cones":   {{.152286, 1.052583, -.204868}, {.114503, .786281, .099216}, {-.003882, -.048116, 1.051998}},
	"no green cones": {{.367322, .860646, -.227968}, {.280085, .672501, .047413}, {-.011820, .042940, .968881}},
	"no blue cones":  {{1.255528, -.076749, -.178779}, {-.078411, .930809, .147602}, {.004733, .691367, .303900}},
}

func rgbOf(hex string) (rgb [3]float64) {
	for i := range rgb {
		n, _ := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8) // the pattern has only such digits
		x := float64(n) / 255
		if rgb[i] = x / 12.92; x > .04045 {
			rgb[i] = math.Pow((x+.055)/1.055, 2.4)
		}
	}
	return rgb
}

func times(m [3][3]float64, v [3]float64) (out [3]float64) {
	for i := range out {
		out[i] = m[i][0]*v[0] + m[i][1]*v[1] + m[i][2]*v[2]
	}
	return out
}

// perceived returns a colour in OKLab.
func perceived(rgb [3]float64, sight [3][3]float64) [3]float64 {
	v := times(sight, rgb)
	for i := range v {
		v[i] = min(1, max(0, v[i]))
	}
	v = times([3][3]float64{{.4122214708, .5363325363, .0514459929}, {.2119034982, .6806995451, .1073969566}, {.0883024619, .2817188376, .6299787005}}, v)
	for i := range v {
		v[i] = math.Cbrt(v[i])
	}
	return times([3][3]float64{{.2104542553, .7936177850, -.0040720468}, {1.9779984951, -2.4285922050, .4505937099}, {.0259040371, .7827717662, -.8086757660}}, v)
}

func distance(a, b [3]float64) float64 {
	return math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
}

func contrast(a, b [3]float64) float64 {
	light := func(c [3]float64) float64 { return .2126*c[0] + .7152*c[1] + .0722*c[2] + .05 }
	return max(light(a), light(b)) / min(light(a), light(b))
}
