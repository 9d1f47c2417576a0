package tablets_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/tablets"
)

// TestNothingAsked: a table without requests is served, and needs a node.
func TestNothingAsked(t *testing.T) {
	r := run(t, tablets.Load{Fronts: make([]tablets.Front, 1)}, tablets.Cluster{Nodes: 1}, tablets.Options{})
	if r.ServedShare != 1 || r.Need.Nodes != 1 || r.Balanced != 0 || r.Tablets != 1 || r.HottestNode != 0 {
		t.Errorf("without requests the result is %+v", r)
	}
	total, samples := r.Heat.Samples(0, tablets.Writes, 10, 1)
	for range samples {
		t.Errorf("there is a sample of %v requests", total)
	}
}

// TestCancelled: a simulation ends with its context, and says why and where.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	steps, why := 0, errors.New("the user has seen enough")
	late := func(at time.Duration) float64 {
		if steps++; at == 30*time.Minute {
			cancel(why)
		}
		return 1
	}
	_, err := tablets.Simulate(ctx, tablets.Load{Fronts: fronts(4, 1), Curves: []tablets.Curve{late}}, tablets.Cluster{Nodes: 1}, tablets.Options{Duration: time.Hour})
	if !errors.Is(err, why) || !strings.Contains(err.Error(), "step 0 of 360") {
		t.Errorf("the error of a cancelled simulation is %v", err)
	}
	if steps != 360 {
		t.Errorf("a curve is asked %d times, want once for each of 360 steps", steps)
	}
}
