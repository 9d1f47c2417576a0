package tablets_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/tablets"
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
		f, err := tablets.Keys{Entities: 12, Prefix: test.prefix, Writes: 24, Stored: 12e6, Share: func(e int) float64 { return float64(1 + e%2) }, Moves: true, RowBytes: 50}.Fronts()
		if err != nil {
			t.Fatal(err)
		}
		lists := make([][]int, len(f.List))
		for e := range 12 {
			lists[f.Of(e)] = append(lists[f.Of(e)], e)
		}
		var got []string
		writes := 0.0
		for i, list := range lists {
			got = append(got, fmt.Sprint(list))
			want := 0.0
			for _, e := range list {
				want += 24. / 18 * float64(1+e%2)
			}
			near(t, fmt.Sprintf("%s: the writes of front %d", test.name, i), f.List[i].Writes, want, 1e-9)
			near(t, fmt.Sprintf("%s: the bytes of front %d", test.name, i), f.List[i].Stored, want*12e6/24, 1e-3)
			writes += f.List[i].Writes
			if n := f.Entities(i); n != len(list) || !f.List[i].Moves || f.List[i].RowBytes != 50 {
				t.Errorf("%s: front %d of %d entities is %+v", test.name, i, n, f.List[i])
			}
			if e := f.Any(i, rand.New(rand.NewPCG(1, 1))); !slices.Contains(list, e) {
				t.Errorf("%s: entity %d is not of front %d", test.name, e, i)
			}
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("%s: the fronts are %s, want %s", test.name, s, test.want)
		}
	}
}

// TestManyEntities: five million entities become fronts of neighbours, without losing a write.
func TestManyEntities(t *testing.T) {
	f, err := tablets.Keys{Entities: 5_000_000, Writes: 8000, Prefix: []func(int) int{func(e int) int { return e }}}.Fronts()
	if err != nil {
		t.Fatal(err)
	}
	if f.Joined != 39 || len(f.List) != 128_206 || f.Of(4_999_999) != 128_205 {
		t.Errorf("there are %d fronts of %d entities", len(f.List), f.Joined)
	}
	if first, last := f.Of(500), f.Of(999); first != 12 || last != 25 {
		t.Errorf("entities 500 and 999 have the fronts %d and %d", first, last)
	}
	r := run(t, tablets.Load{Fronts: f.List}, tablets.Cluster{Nodes: 3}, tablets.Options{})
	near(t, "the requests", r.Offered.Writes, 8000*3600, 1)
}

func TestKeysRefuses(t *testing.T) {
	for _, test := range []struct {
		keys tablets.Keys
		want string
	}{
		{tablets.Keys{}, "Entities is 0; want 1 to 20000000"},
		{tablets.Keys{Entities: 2, Prefix: []func(int) int{func(e int) int { return -e }}}, "Prefix[0] of entity 1 is -1"},
		{tablets.Keys{Entities: 2, Share: func(int) float64 { return -1 }}, "Share of entity 0 is -1; want a number that is not negative"},
		{tablets.Keys{Entities: 2, Writes: 1, Share: func(int) float64 { return 0 }}, "Share is 0 for all entities"},
	} {
		if _, err := test.keys.Fronts(); !errors.Is(err, tablets.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("the error is %v, want one with %q", err, test.want)
		}
	}
}
