package heatmap

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
			r := newTestRecorder(t, Options{})
			for range 50_000 { // most of which are no samples
				r.note(reads, "acme#readings#device-1#7443056836731319018", 1)
			}
			r.note(reads, "acme#maps#berlin#7443056836731319018", size)
			time.Sleep(time.Hour / 2)
			found := r.Recording().Findings()
			if len(found) != want || want == 1 && (found[0].Rule != LargeRows || found[0].Dataset != "maps" || !strings.Contains(found[0].Reason, "read with 10 MiB")) {
				t.Errorf("a row of %d bytes: %+v", size, found)
			}
		}
	})
}

// TestHotReads: an entity that is read much is found with what helps readers.
func TestHotReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRecorder(t, Options{})
		for range 10 {
			for i := range 1000 {
				r.note(reads, fmt.Sprintf("acme#readings#device-%03d#7443056836731319018", i%100), 1)
				r.note(reads, "acme#readings#gate#7443056836731319018", 1)
			}
			time.Sleep(time.Second)
		}
		found := r.Recording().Findings()
		if len(found) != 1 || found[0].Rule != HotEntity || found[0].Share < 0.4 || found[0].Share > 0.6 || found[0].Rate < 900 || found[0].Rate > 1100 || !strings.Contains(found[0].Remedy, "MaxStale") {
			t.Errorf("%+v", found)
		}
	})
}

// TestEvenTenants: tenants of similar sizes are no whales, and few entities with equal load are not hot.
func TestEvenTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRecorder(t, Options{})
		for range 10 {
			for i := range 3000 {
				r.note(writes, fmt.Sprintf("tenant-%d#readings#device-%d#7443056836731319018", i%3, i%10), 1)
			}
			time.Sleep(time.Second)
		}
		if found := r.Recording().Findings(); len(found) != 0 {
			t.Errorf("%+v", found)
		}
	})
}
