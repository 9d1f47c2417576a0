package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// TestLatestAgrees: after random writes and deletions, the API answers what Latest of the repository does, with and
// without its cache.
func TestLatestAgrees(t *testing.T) {
	a := newAPI(t)
	repo := weather.For(a.store, acme)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range 60 {
		at := noon.Add(-time.Duration(r.IntN(6)) * time.Minute)
		var err error
		if r.IntN(3) == 0 {
			err = repo.Delete(t.Context(), roof, at)
		} else {
			err = repo.Put(t.Context(), roof, at, Reading{TempC: num(float64(i))})
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err := repo.Latest(t.Context(), roof)
		for _, path := range []string{"/v1/weather/latest?site=berlin&device=roof-7", "/v1/weather/latest?site=berlin&device=roof-7&max_stale=1m"} {
			got := a.get(path)
			if errors.Is(err, tsdb.ErrNotFound) {
				if got.StatusCode != http.StatusNotFound {
					t.Errorf("seed %d, step %d: %s: %d %s, want no point", seed, i, path, got.StatusCode, got.body)
				}
				continue
			}
			value, when := fmt.Sprintf(`"temp_c":%v`, float(p.Value.TempC)), p.Time.UTC().Format(time.RFC3339)
			if err != nil || got.StatusCode != http.StatusOK || !strings.Contains(got.body, value+"}") && !strings.Contains(got.body, value+",") || !strings.Contains(got.body, when) {
				t.Errorf("seed %d, step %d: %s: %d %s, want %s at %s, %v", seed, i, path, got.StatusCode, got.body, value, when, err)
			}
		}
	}
}
