package heatview

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLargeRows: a row of 10 MiB is found wherever it was, one byte less is not.
func TestLargeRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for size, want := range map[int]int{10<<20 - 1: 0, 10 << 20: 1} {
			r := newTestRecorder(time.Second)
			for range 50_000 { // most of which are no samples
				r.note(reads, "acme#readings#device-1#7443056836731319018", 1)
			}
			r.note(reads, "acme#maps#berlin#7443056836731319018", size)
			time.Sleep(time.Hour / 2)
			found := Findings(r.recording())
			if len(found) != want || want == 1 && (found[0].Rule != LargeRows || found[0].Dataset != "maps" || !strings.Contains(found[0].Reason, "read with 10 MiB")) {
				t.Errorf("a row of %d bytes: %+v", size, found)
			}
		}
	})
}

// TestHotReads: an entity that is read much is found with what helps readers.
func TestHotReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRecorder(time.Second)
		for range 10 {
			for i := range 1000 {
				r.note(reads, fmt.Sprintf("acme#readings#device-%03d#7443056836731319018", i%100), 1)
				r.note(reads, "acme#readings#gate#7443056836731319018", 1)
			}
			time.Sleep(time.Second)
		}
		found := Findings(r.recording())
		if len(found) != 1 || found[0].Rule != HotEntity || found[0].Share < 0.4 || found[0].Share > 0.6 || found[0].Rate < 900 || found[0].Rate > 1100 || !strings.Contains(found[0].Remedy, "MaxStale") {
			t.Errorf("%+v", found)
		}
	})
}

// TestEvenTenants: tenants of similar sizes are no whales, and few entities with equal load are not hot.
func TestEvenTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRecorder(time.Second)
		for range 10 {
			for i := range 3000 {
				r.note(writes, fmt.Sprintf("tenant-%d#readings#device-%d#7443056836731319018", i%3, i%10), 1)
			}
			time.Sleep(time.Second)
		}
		if found := Findings(r.recording()); len(found) != 0 {
			t.Errorf("%+v", found)
		}
	})
}

// TestTimelines: a tenant or a salt before the time hides no diagonal, also if most of its writes fail. A device before
// the time is no diagonal.
func TestTimelines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			key  func(i int, at time.Time) string
			want string
		}{
			"a tenant": {func(i int, at time.Time) string { return fmt.Sprintf("acme#%d#device-%04d", at.UnixMilli(), i) }, "acme# one place that moves"},
			"salts":    {func(i int, at time.Time) string { return fmt.Sprintf("%02d#%d#device-%04d", i%4, at.UnixMilli(), i) }, "0 4 places that move"}, // any salt may be the first,
			"a device": {func(i int, at time.Time) string { return fmt.Sprintf("device-%04d#%d#temp", i, at.UnixMilli()) }, ""},
		} {
			r := newTestRecorder(time.Second)
			for range 10 {
				for i := range 4000 {
					k := writes
					if i%5 > 1 && name != "a device" {
						k = failures
					}
					r.note(k, test.key(i, time.Now()), 1)
				}
				time.Sleep(time.Second)
			}
			var got []string
			for _, f := range Findings(r.recording()) {
				got = append(got, string(f.Rule))
				if key, places, _ := strings.Cut(test.want, " "); f.Rule == Sequential && (!strings.HasPrefix(f.Key, key) || !strings.Contains(f.Reason, places) || f.Rate < 3900 || f.Rate > 4100) {
					t.Errorf("%s: %+v, want %s", name, f, test.want)
				}
			}
			want := "[sequential failing]"
			if test.want == "" {
				want = "[]"
			}
			if fmt.Sprint(got) != want {
				t.Errorf("%s: found %v, want %s", name, got, want)
			}
		}
	})
}
