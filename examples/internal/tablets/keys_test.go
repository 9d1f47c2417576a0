package tablets_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/examples/internal/tablets"
)

// TestKeys: the fronts of layouts of keys are in the order of the keys, and entities with the same prefix share one.
func TestKeys(t *testing.T) {
	tenant := func(e int) int { return e / 4 } // three tenants of four entities
	device := func(e int) int { return e }
	salt := func(e int) int { return e * 7 % 3 }
	line := func(e int) int { return 70_000 - e%2*40_000 } // a part whose order is not that of the entities, beyond 16 bits
	for _, test := range []struct {
		name   string
		prefix []func(int) int
		want   string // entities by front
	}{
		{"time", nil, "[0 1 2 3 4 5 6 7 8 9 10 11]"},
		{"tenant#time", []func(int) int{tenant}, "[0 1 2 3] [4 5 6 7] [8 9 10 11]"},
		{"tenant#device#~time", []func(int) int{tenant, device}, "[0] [1] [2] [3] [4] [5] [6] [7] [8] [9] [10] [11]"},
		{"salt(3)#time", []func(int) int{salt}, "[0 3 6 9] [1 4 7 10] [2 5 8 11]"},
		{"salt(3)#tenant#time", []func(int) int{salt, tenant}, "[0 3] [6] [9] [1] [4 7] [10] [2] [5] [8 11]"},
		{"tenant#salt(3)#time", []func(int) int{tenant, salt}, "[0 3] [1] [2] [6] [4 7] [5] [9] [10] [8 11]"},
		{"line#device#~time", []func(int) int{line, device}, "[1] [3] [5] [7] [9] [11] [0] [2] [4] [6] [8] [10]"},
	} {
		order, err := tablets.NewOrder(12, test.prefix)
		if err != nil {
			t.Fatal(err)
		}
		list, err := tablets.Keys{Order: order, Writes: 24, Stored: 12e6, Share: func(e int) float64 { return float64(1 + e%2) }, Moves: true, RowBytes: 50}.Fronts()
		if err != nil {
			t.Fatal(err)
		}
		lists := make([][]int, order.Len())
		for i := range lists {
			lists[i] = slices.Collect(order.Each(i))
		}
		var got []string
		writes := 0.0
		for i, entities := range lists {
			got = append(got, fmt.Sprint(entities))
			want := 0.0
			for _, e := range entities {
				want += 24. / 18 * float64(1+e%2)
			}
			near(t, fmt.Sprintf("%s: the writes of front %d", test.name, i), list[i].Writes, want, 1e-9)
			near(t, fmt.Sprintf("%s: the bytes of front %d", test.name, i), list[i].Stored, want*12e6/24, 1e-3)
			writes += list[i].Writes
			if n := order.Entities(i); n != len(entities) || !list[i].Moves || list[i].RowBytes != 50 {
				t.Errorf("%s: front %d of %d entities is %+v", test.name, i, n, list[i])
			}
			for first := range 12 { // those from first on, if the front has some
				e := order.Any(i, first, 12, rand.New(rand.NewPCG(1, 1)))
				if !slices.Contains(entities, e) || e < first && slices.Max(entities) >= first {
					t.Errorf("%s: entity %d is not of front %d, or below %d", test.name, e, i, first)
				}
			}
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("%s: the fronts are %s, want %s", test.name, s, test.want)
		}
	}
}

// TestManyEntities: five million entities become fronts of neighbours, without losing a write.
func TestManyEntities(t *testing.T) {
	order, err := tablets.NewOrder(5_000_000, []func(int) int{func(e int) int { return e }})
	if err != nil {
		t.Fatal(err)
	}
	list, err := tablets.Keys{Order: order, Writes: 8000}.Fronts()
	if err != nil {
		t.Fatal(err)
	}
	if order.Joined != 39 || len(list) != 128_206 || order.Entities(0) != 39 || order.Entities(128_205) != 5 {
		t.Errorf("there are %d fronts of %d entities", len(list), order.Joined)
	}
	r := run(t, tablets.Load{Fronts: list}, tablets.Cluster{Nodes: 3}, tablets.Options{})
	near(t, "the requests", r.Offered.Writes, 8000*3600, 1)
}

func TestKeysRefuses(t *testing.T) {
	for want, parts := range map[string][]func(int) int{
		"Entities is 0; want 1 to 20000000": nil,
		"part 0 of entity 1 is -1":          {func(e int) int { return -e }},
	} {
		if _, err := tablets.NewOrder(len(parts)*2, parts); !errors.Is(err, tablets.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
	order, err := tablets.NewOrder(2, nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, keys := range map[string]tablets.Keys{
		"Share of entity 0 is -1; want a number that is not negative": {Order: order, Share: func(int) float64 { return -1 }},
		"Share is 0 for all entities":                                 {Order: order, Writes: 1, Share: func(int) float64 { return 0 }},
	} {
		if _, err := keys.Fronts(); !errors.Is(err, tablets.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}
