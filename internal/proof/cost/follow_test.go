package cost

import (
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// lateness makes polls read the newest 6 points of each device.
const lateness = 6 * time.Minute

var live = group{title: "Following", calls: []call{
	{
		covers: []string{"Repository.Follow"}, name: "`Repository.Follow`, 6 points in the window, of 1,000",
		requests: only("read", always(1)), seen: always(6),
		run: func(w *world, n int) func() {
			w.history(1, 1000)
			return func() {
				f, err := w.repo.Follow(w.ctx, device(0), tsdb.FollowOptions{Lateness: lateness})
				w.ok(err)
				w.ok(f.Close())
			}
		},
	},
	{
		covers: []string{"PrefixReader.Follow"}, name: "`PrefixReader.Follow`, 6 points in the window, of 1,000", of: "entities", sizes: []int{1, 5, 10},
		requests: only("read", each(1, 2)), seen: each(22, 32).atMost(),
		run: func(w *world, n int) func() {
			w.history(n, 1000)
			return func() {
				f, err := w.repo.Under(tsdb.NewPrefix("berlin")).Follow(w.ctx, tsdb.FollowOptions{Lateness: lateness})
				w.ok(err)
				w.ok(f.Close())
			}
		},
	},
	{
		covers: []string{"Follower.Points"}, name: "a poll of `Follower.Points`, 6 points in the window, of 10", of: "entities", sizes: []int{1, 125, 160},
		requests: only("read", groups(125, 0)), seen: each(6, 0),
		run: func(w *world, n int) func() {
			w.history(n, 10)
			f, err := w.repo.Under(tsdb.NewPrefix("berlin")).Follow(w.ctx, tsdb.FollowOptions{Since: w.clock().Add(-lateness)})
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
