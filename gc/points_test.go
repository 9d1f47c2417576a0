package gc

import (
	"errors"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/gate"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

func TestPointAge(t *testing.T) {
	for _, test := range []struct {
		policy  Policy
		age     time.Duration
		bounded bool
		err     error
	}{
		{policy: Never()},
		{policy: All(MaxAge(day), Never())},
		{policy: All(Any(MaxAge(day), MaxAge(2*day)), Any(Never()))},
		{policy: MaxAge(day), age: day, bounded: true},
		{policy: Any(MaxAge(3*day), MaxAge(day), MaxAge(2*day)), age: day, bounded: true},
		{policy: All(MaxAge(3*day), MaxAge(day), MaxAge(2*day)), age: 3 * day, bounded: true},
		{policy: Any(Never(), MaxAge(day)), age: day, bounded: true},
		{policy: Any(All(MaxAge(day), MaxAge(5*day)), All(MaxAge(4*day), MaxAge(2*day))), age: 4 * day, bounded: true},
		{policy: Any(All(MaxAge(day), Never()), MaxAge(9*day)), age: 9 * day, bounded: true},
		{policy: MaxVersions(1), err: invalid.ErrVersions},
		{policy: Any(MaxAge(day), MaxVersions(1)), err: invalid.ErrVersions},
		{policy: All(MaxAge(day), MaxVersions(1)), err: invalid.ErrVersions},
		{policy: Any(MaxAge(2*day), All(MaxAge(day), MaxVersions(3))), err: invalid.ErrVersions},
		// A cell of a point is alone in its column, so these versions remove nothing.
		{policy: Any(MaxAge(day), All(MaxAge(2*day), MaxVersions(3))), age: day, bounded: true},
		{policy: All(MaxVersions(3), Never())},
		{policy: MaxAge(0), err: invalid.ErrPolicy},
	} {
		age, bounded, err := test.policy.PointAge()
		if age != test.age || bounded != test.bounded || !errors.Is(err, test.err) {
			t.Errorf("%v.PointAge() = %v, %v, %v; want %v, %v, %v", test.policy, age, bounded, err, test.age, test.bounded, test.err)
		}
	}
	_, _, err := gate.Of(Any(MaxAge(day), MaxVersions(2))).Cutoff(time.Now())
	want := `gc: versions policies do not apply to points: policy is "maxage=1d || maxversions=2"; want ages only, or never`
	if err == nil || err.Error() != want {
		t.Errorf("PointAge of a policy of versions:\n%v; want\n%v", err, want)
	}
}

func TestCutoff(t *testing.T) {
	midnight := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		now  time.Time
		want time.Time
	}{
		{midnight, midnight.Add(-day)},
		{midnight.Add(1), midnight.Add(-day).Add(time.Millisecond)},
		{midnight.Add(999_999), midnight.Add(-day).Add(time.Millisecond)},
		{midnight.Add(1_000_000), midnight.Add(-day).Add(time.Millisecond)},
		{time.Unix(0, -1).Add(day), time.Unix(0, 0).UTC()}, // before 1970 it still rounds up
	} {
		got, bounded, err := gate.Of(MaxAge(day)).Cutoff(test.now.In(time.FixedZone("", 3600)))
		if got != test.want || !bounded || err != nil {
			t.Errorf("at %v the cutoff of a day is %v, %v, %v; want %v", test.now, got, bounded, err, test.want)
		}
	}
	if cutoff, bounded, err := gate.Of(Never()).Cutoff(midnight); !cutoff.IsZero() || bounded || err != nil {
		t.Errorf("the policy never has a cutoff: %v, %v, %v; want none", cutoff, bounded, err)
	}
	now := time.Now()
	if n := testing.AllocsPerRun(100, func() { instant.Cutoff(now, day) }); n != 0 {
		t.Errorf("computing a cutoff, as each read does, costs %v allocations, want 0", n)
	}
}
