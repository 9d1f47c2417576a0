package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/faultdisk"
)

// What a request has found in the newest state may be on disk and not be seen by readers, because of an older write in
// flight. Then the request is answered when they see it.
func TestAnswersWaitForReaders(t *testing.T) {
	for _, c := range unsyncedCases {
		if c.free {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			onFaultDisk(t, func(t *testing.T, d *faultdisk.Disk, e *engine.Engine) {
				end := e.BeginFlight()
				first := start(t.Context(), e, c.first)
				second := start(t.Context(), e, c.second)
				if first.done.Load() || second.done.Load() {
					t.Errorf("before readers see them: got answered=%v for the first request, %v for the second", first.done.Load(), second.done.Load())
				}
				end()
				synctest.Wait()
				if !second.done.Load() || second.err != nil || second.got != c.want {
					t.Errorf("got answered=%v, %q, %v for the second request, want %q", second.done.Load(), second.got, second.err, c.want)
				}
				if !first.done.Load() || first.err != nil {
					t.Errorf("got answered=%v, %v for the first request", first.done.Load(), first.err)
				}
			})
		})
	}
}

// A writer whose context ends while it waits for readers does not hold up others.
func TestWaitForReadersEndsWithContext(t *testing.T) {
	onFaultDisk(t, func(t *testing.T, d *faultdisk.Disk, e *engine.Engine) {
		end := e.BeginFlight()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := write("new", setting("q", "b"))(ctx, e); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		end()
		if _, err := write("new2", setting("q", "c"))(t.Context(), e); err != nil {
			t.Error(err)
		}
		if got, err := readOf(nil, nil)(t.Context(), e); err != nil || got != "new=b new2=c old=a other=a" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// An engine without writes holds no snapshots.
func TestNoSnapshotsAreLeft(t *testing.T) {
	onFaultDisk(t, func(t *testing.T, d *faultdisk.Disk, e *engine.Engine) {
		for range 3 {
			d.Hang()
			for i := range 8 {
				start(t.Context(), e, write(fmt.Sprint("new", i), setting("q", "b")))
			}
			if e.OpenSnapshots() == 0 {
				t.Error("no snapshots while writes are in flight")
			}
			d.Release()
			time.Sleep(time.Second)
			if n := e.OpenSnapshots(); n != 0 {
				t.Errorf("%d snapshots are left", n)
			}
		}
	})
}
