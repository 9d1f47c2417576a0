package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// TestInstantQueryAgrees: after random writes and deletions, an instant query answers what Latest of the repository
// does.
func TestInstantQueryAgrees(t *testing.T) {
	s := mappedOver(t, someLimits, truckData)
	repo, truck := truckData.For(s.store, acme), tsdb.NewEntity("East", "truck_1")
	now := time.UnixMilli(start0).Add(4 * time.Minute) // within the lookback of all points
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range 60 {
		at := now.Add(-time.Duration(r.IntN(6)) * 30 * time.Second)
		var err error
		if i > 0 && r.IntN(3) == 0 {
			err = repo.Delete(t.Context(), truck, at)
		} else {
			err = repo.Put(t.Context(), truck, at, reading{Speed: float64(i)})
		}
		if err != nil {
			t.Fatal(err)
		}
		_, got := s.get("query", "query", "trucks_speed", "time", fmt.Sprint(now.Unix()))
		p, err := repo.Latest(t.Context(), truck)
		want := fmt.Sprintf(`"value":[%d,"%v"]`, now.Unix(), p.Value.Speed)
		if errors.Is(err, tsdb.ErrNotFound) {
			want, err = `"result":[]`, nil
		}
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("seed %d, step %d: %s, want %s, %v", seed, i, got, want, err)
		}
	}
}
