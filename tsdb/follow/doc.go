// Package follow delivers new points as they arrive: those of an entity ([Entity]), or of all entities under a prefix ([Under]).
//
//	f, err := follow.Under(ctx, repo, tsdb.NewPrefix("berlin"), follow.Options{After: saved})
//	if err != nil {
//		return err
//	}
//	defer f.Close()
//	for p, err := range f.Points(ctx) {
//		if err != nil {
//			return err
//		}
//		show(p)
//		saved = f.Cursor()
//	}
//
// # Which points, and when
//
// A point that the follower's own store stores is delivered at once, whatever its time: by Put, PutMany, PutIfAbsent, a Writer with
// or without a journal, or an import. Points of other stores and processes are found by polling, so they come up to
// Options.Interval later. Order is the order of arrival at this store: that of its own writes, and that in which polls find the
// others. A poll finds points by entity, and each entity's oldest first.
//
// The table does not show when a point was written. So a poll reads the points of the last Options.Lateness again, and remembers
// which of them it has delivered. A point of another process is found if its time is at most Lateness before the moment at which it
// can be read, by the clock of the follower's store. Later ones are missed: a device that sends a day's points at once, through another process, needs a Lateness of a day,
// or a read of the range. Lateness must also cover the difference between the clocks of devices and store and, with replication, the
// replication delay: a point that the store's app profile cannot read yet arrives when it can. A point in the future is delivered when it
// is found.
//
//   - Each value is delivered once. A point that is written again with another value is delivered again; with the same value it is
//     not, within Lateness. Of several values that overwrite each other between two polls, the follower sees the last.
//   - A merged point is delivered as it is stored then, with the fields of all writes.
//   - A deletion is not delivered. A point that was deleted or overwritten before a poll is missed. A point that this store wrote is
//     delivered even if it is deleted before the loop takes it.
//   - An expired point is not delivered. If the tenant or the dataset is erased, Points ends with tsdb.ErrErased. Points of an entity that is erased are
//     not found any more.
//   - A write whose outcome is unknown (tsdb.ErrUnknown) is delivered if a poll finds it.
//   - In a schema with Head.Only, a poll sees at most the newest Head.Points points of each entity.
//   - Rollups are not followed.
//
// # The position
//
// Cursor returns the position behind the last point that the loop took. It is bound to tenant, dataset, and entity or prefix, and sealed
// like the cursors of pages. With it, Options.After continues in any process: all points since then are delivered, if they are not
// later than Lateness. Points that other processes or this one stored late, while nobody followed, are missed.
//
// The cursor remembers the last 64 delivered points. If more than 64 points have arrived within Lateness and two polls, some of these
// can be delivered a second time after a restart. Points have keys: entity, time and ID identify the repeated ones. A follower that
// was not restarted delivers none twice, unless more than 65,536 points arrive within Lateness. Then it remembers the youngest, and
// the window in which it finds late points gets shorter.
//
// # Slow loops
//
// A follower never delays a write or another follower. It queues up to 1,024 points or 1 MiB of this store's writes. If
// the loop is too slow for that, it drops the queue and reads on from its position, as after a restart. Dropped points that are later than
// Lateness cannot be found by reading: Points then yields a [MissedError] with their times, and continues.
//
// # Cost
//
// A poll of n entities costs one request per 125 entities, at most 16, and reads the rows of the last Lateness. With more than 2,000
// entities a sweep takes several polls. Open finds the entities at the cost of Repository.Entities and reads the window
// once; each new entity costs one more request. In a schema with Head.Only a poll is one request for the heads of all entities. A poll counts as a read against the tenant's limits, and the window as the length
// of its range. Requests that the limits or the service refuse are repeated later, up to five times in a row.
//
// Memory: up to 1 MiB of queue, 4 MiB of points that a poll found, and about 50 bytes per remembered point. A prefix has at most
// 10,000 entities, a store at most 1,000 followers ([ErrTooMany]), and a tenant 100 of them (limit.Followers). A write costs nothing more if
// nobody follows, and else one comparison per follower of its tenant and dataset.
package follow
