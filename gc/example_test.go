package gc_test

import (
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/gc"
)

const day = 24 * time.Hour

func ExamplePolicy() {
	p := gc.Any(gc.MaxAge(30*day), gc.All(gc.MaxAge(3*day), gc.MaxVersions(100)))
	fmt.Println(p)
	fmt.Println(gc.Any(gc.MaxAge(7*day), p)) // 7 days and 30 days: the older rule has no effect
	fmt.Println(gc.MaxAge(-day).Validate())
	// Output:
	// maxage=30d || (maxage=3d && maxversions=100)
	// maxage=7d || (maxage=3d && maxversions=100)
	// gc: invalid retention: maxage is -24h0m0s; want a positive whole number of seconds
}

func ExampleParse() {
	p, err := gc.Parse("maxversions=2 || maxage=36h")
	fmt.Println(p, err)
	_, err = gc.Parse("maxage=30")
	fmt.Println(err)
	// Output:
	// maxage=36h || maxversions=2 <nil>
	// gc: invalid retention: policy text at byte 7 is "30"; want a whole number with a unit (d, h, m, s, ms or us), less than 106752d in all
}

func ExamplePolicy_Equal() {
	p := gc.Any(gc.MaxAge(day), gc.MaxVersions(2))
	q := gc.Any(gc.MaxVersions(2), gc.Any(gc.MaxAge(2*day), gc.MaxAge(day)))
	fmt.Println(p.Equal(q))
	// Output: true
}

func ExamplePolicy_PointAge() {
	age, bounded, err := gc.All(gc.MaxAge(30*day), gc.MaxAge(90*day)).PointAge()
	fmt.Println(age, bounded, err)

	_, _, err = gc.MaxVersions(2).PointAge()
	fmt.Println(err)
	// Output:
	// 2160h0m0s true <nil>
	// gc: versions policies do not apply to points: policy is "maxversions=2"; want ages only, or never
}

func ExampleClass() {
	d90 := gc.Class{Name: "d90", Policy: gc.MaxAge(90 * day)}
	fmt.Println(d90.Name, d90.Policy, d90.Validate())
	fmt.Println(gc.Class{Name: "_own"}.Validate())
	// Output:
	// d90 maxage=90d <nil>
	// gc: invalid retention: class is "_own"; want 1 to 32 bytes of A-Z a-z 0-9 _ -, starting with a letter or a digit
}
