package cost

import (
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/follow"
)

// lateness makes polls read the newest 6 points of each device.
const lateness = 6 * time.Minute

var live = group{title: "Following", calls: []call{
	{
		covers: []string{"follow.Entity"}, name: "`follow.Entity`, 6 points in the window, of 1,000",
		requests: only("read", always(1)), seen: always(6),
		run: func(w *world, n int) func() {
			w.history(1, 1000)
			return func() {
				f, err := follow.Entity(w.ctx, w.repo, device(0), follow.Options{Lateness: lateness})
				w.ok(err)
				w.ok(f.Close())
			}
		},
	},
	{
		covers: []string{"follow.Under"}, name: "`follow.Under`, 6 points in the window, of 1,000", of: "entities", sizes: []int{1, 5, 10},
		requests: only("read", each(1, 2)), seen: each(22, 32).atMost(),
		run: func(w *world, n int) func() {
			w.history(n, 1000)
			return func() {
				f, err := follow.Under(w.ctx, w.repo, tsdb.NewPrefix("berlin"), follow.Options{Lateness: lateness})
				w.ok(err)
				w.ok(f.Close())
			}
		},
	},
	{
		covers: []string{"follow.Follower.Points"}, name: "a poll of `Follower.Points`, 6 points in the window, of 10", of: "entities", sizes: []int{1, 125, 160},
		requests: only("read", groups(125, 0)), seen: each(6, 0),
		run: func(w *world, n int) func() {
			w.history(n, 10)
			f, err := follow.Under(w.ctx, w.repo, tsdb.NewPrefix("berlin"), follow.Options{Since: w.clock().Add(-lateness)})
			w.ok(err)
			w.Cleanup(func() { _ = f.Close() })
			return func() {
				got := 0
				for _, err := range f.Points(w.ctx) {
					w.ok(err)
					if got++; got == 6*n {
						break
					}
				}
			}
		},
	},
}}
