package tablets_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/tablets"
)

// TestRefuses: what makes no sense is refused with the name of the field, its value and what is allowed.
func TestRefuses(t *testing.T) {
	type input struct {
		load    tablets.Load
		cluster tablets.Cluster
		options tablets.Options
	}
	for _, test := range []struct {
		change func(in *input)
		want   string
	}{
		{func(in *input) { in.load = tablets.Load{} }, "Fronts is empty; want at least 1"},
		{func(in *input) { in.load.Fronts = make([]tablets.Front, tablets.MaxFronts+1) }, "Fronts is 4194305 long; want at most 4194304"},
		{func(in *input) { in.load.Fronts[1].Writes = -1 }, "Fronts[1].Writes is -1; want 0 to 1e+09 rows a second"},
		{func(in *input) { in.load.Fronts[1].Writes = math.NaN() }, "Fronts[1].Writes is NaN"},
		{func(in *input) { in.load.Fronts[1].RowBytes = math.Inf(1) }, "Fronts[1].RowBytes is +Inf; want 0 to 268435456 bytes"},
		{func(in *input) { in.load.Fronts[0].Stored = 1e17 }, "Fronts[0].Stored is 1e+17"},
		{func(in *input) { in.load.Fronts[0].Curve = 1 }, "Fronts[0].Curve is 1; want 0 for none, or up to 0"},
		{func(in *input) { in.load.Fronts[0].Curve = -1 }, "Fronts[0].Curve is -1"},
		{func(in *input) { in.load.Curves = []tablets.Curve{nil} }, "Curves[0] is nil; want a function"},
		{func(in *input) { in.load.Curves = []tablets.Curve{func(time.Duration) float64 { return -2 }} }, "Curves[0] at 0s is -2; want 0 to 1000000"},
		{func(in *input) {
			in.load.Curves = []tablets.Curve{func(at time.Duration) float64 { return math.Log(at.Seconds()-600) + 9 }}
		}, "Curves[0] at 0s is NaN"},
		{func(in *input) { in.load.Reads = []tablets.Read{{}} }, "Reads[0].Last is 0; want behind First and at most the number of fronts: 1 to 4"},
		{func(in *input) { in.load.Reads = []tablets.Read{{First: 4, Last: 5}} }, "Reads[0].First is 4; want a front: 0 to 3"},
		{func(in *input) { in.load.Reads = []tablets.Read{{Last: 1, Rate: -1}} }, "Reads[0].Rate is -1"},
		{func(in *input) { in.load.Reads = []tablets.Read{{Last: 1, Rows: 1e10}} }, "Reads[0].Rows is 1e+10"},
		{func(in *input) { in.load.Reads = make([]tablets.Read, 4001) }, "Reads is 4001 long"},
		{func(in *input) { in.load.Jumps = []tablets.Jump{{Last: 2}} }, "Jumps[0].Every is 0s; want at least 1s"},
		{func(in *input) {
			in.load.Jumps = []tablets.Jump{{Last: 2, Every: time.Hour}, {First: 1, Last: 3, Every: time.Hour}}
		}, "Jumps[1].First is 1; want at least 2"},
		{func(in *input) { in.load.Splits = []int{2, 2} }, "Splits[1] is 2; want from 3 to 3"},
		{func(in *input) { in.load.Splits = []int{0} }, "Splits[0] is 0; want from 1 to 3"},
		{func(in *input) { in.cluster.Nodes = 0 }, "Nodes is 0; want 1 to 1000"},
		{func(in *input) { in.cluster = tablets.Cluster{Nodes: 3, Double: true} }, "Nodes is 3; want an even number"},
		{func(in *input) { in.cluster.Storage = 7 }, "Storage is 7; want SSD or HDD"},
		{func(in *input) { in.cluster.TargetCPU = 60 }, "TargetCPU is 60; want 0 for 0.6, or 0.01 to 1"},
		{func(in *input) { in.options.Duration = time.Second }, "Duration is 1s; want 1m to 744h"},
		{func(in *input) { in.options.Duration = 1000 * time.Hour }, "Duration is 1000h0m0s"},
		{func(in *input) { in.options.Warm = -1 }, "Warm is -1ns"},
		{func(in *input) { in.options.Step = time.Millisecond }, "Step is 1ms"},
		{func(in *input) { in.options = tablets.Options{Duration: 24 * time.Hour, Step: time.Second} }, "Step is 1s; want at least 5s, so that there are at most 20000 steps"},
		{func(in *input) { in.options.Columns = 257 }, "Columns is 257"},
		{func(in *input) { in.options.Lines = -1 }, "Lines is -1"},
		{func(in *input) { in.options.Assume.SplitLoad = 2 }, "Assume.SplitLoad is 2; want 0 for 25%, or 1% to 100%"},
		{func(in *input) { in.options.Assume.MoveTime = -time.Second }, "Assume.MoveTime is -1s; want 0 for 1s, or 20ms to 50s"},
		{func(in *input) { in.options.Assume.Capacity = math.NaN() }, "Assume.Capacity is NaN"},
	} {
		in := input{load: tablets.Load{Fronts: fronts(4, 100)}, cluster: tablets.Cluster{Nodes: 3}}
		test.change(&in)
		r, err := tablets.Simulate(t.Context(), in.load, in.cluster, in.options)
		if r != nil || !errors.Is(err, tablets.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("the error is %v, want one with %q", err, test.want)
		}
	}
	for want, call := range map[string]func() error{
		"candidates is 0; want 1 to 100": func() error {
			_, err := tablets.Compare(t.Context(), nil, tablets.Cluster{Nodes: 1}, tablets.CompareOptions{})
			return err
		},
		`candidate "empty": tsdb: invalid input: Fronts is empty`: func() error {
			_, err := tablets.Compare(t.Context(), []tablets.Candidate{{Name: "empty"}}, tablets.Cluster{Nodes: 1}, tablets.CompareOptions{})
			return err
		},
		"Draws is 1001; want 0 for 40, or up to 1000": func() error {
			_, err := tablets.Compare(t.Context(), make([]tablets.Candidate, 1), tablets.Cluster{Nodes: 1}, tablets.CompareOptions{Draws: 1001})
			return err
		},
	} {
		if err := call(); !errors.Is(err, tablets.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

// TestNothingAsked: a table without requests is served, and needs a node.
func TestNothingAsked(t *testing.T) {
	r := run(t, tablets.Load{Fronts: make([]tablets.Front, 1)}, tablets.Cluster{Nodes: 1}, tablets.Options{})
	if r.ServedShare != 1 || r.Need.Nodes != 1 || r.Balanced != 0 || r.Tablets != 1 || r.HottestNode.CPU != 0 {
		t.Errorf("without requests the result is %+v", r)
	}
	for range r.Heat.Samples(0, tablets.Writes, 10, 1) {
		t.Error("there is a sample of no request")
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
	_, err := tablets.Simulate(ctx, tablets.Load{Fronts: fronts(4, 1), Curves: []tablets.Curve{late}}, tablets.Cluster{Nodes: 1}, tablets.Options{})
	if !errors.Is(err, why) || !strings.Contains(err.Error(), "step 0 of 360") {
		t.Errorf("the error of a cancelled simulation is %v", err)
	}
	if steps != 360 {
		t.Errorf("a curve is asked %d times, want once for each of 360 steps", steps)
	}
}
