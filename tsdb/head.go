package tsdb

// Head configures head rows: one extra row per entity, which holds its newest points. With heads, LatestMany costs one
// request for many entities, and LatestUnder and Entities read one row per entity. Reads of one entity use its points and
// cost the same. Head is part of the stored format and cannot change. The zero Head means no heads.
//
// Writes pay for it:
//
//   - Each write sets two rows instead of one. With FirstWins the head is a second request; with Merge, or with FirstWins and
//     Classes, it is three more.
//   - The head of an entity that is written often becomes a hot row, which holds all versions since Bigtable's last garbage
//     collection. Do not use heads for more than some tens of writes per second to one entity.
//   - Deletions repair the head, at the cost of a few requests per entity.
//
// If retention classes of one schema differ in age, older points can outlive newer ones that replaced them in the head.
// LatestMany then also reads the points of entities whose head holds too few points that are too young to have expired in any
// class, and LatestUnder and Entities use only the points.
//
// A write is Stored if both rows are written, and Unknown if only one is known to be. Repeating the write, or a failed
// deletion, repairs the difference. The two rows are not written atomically: if two writers write different values of one
// point at the same time, or one writes and another deletes, each row may keep another result. The points are then correct;
// the head follows when the point is written or deleted again. With FirstWins, or if a point has only one possible value,
// concurrent writers cannot cause this.
type Head struct {
	// Points is the number of points in a head, 1 to 100. Zero means no head. Heads need Milliseconds precision, because cell
	// timestamps identify the points in a head. The payloads of a head share 10 MiB: with 5 points, each may have 2 MiB.
	Points int
	// Only stores heads and no other rows: a short history of the newest points, in one row per entity, with all calls of a
	// repository. A point is gone as soon as Points newer ones are stored. Until Bigtable has collected it, it may reappear
	// if a newer point is deleted or, in a shorter class, expires, and PutIfAbsent may find it. Only cannot be combined with
	// FirstWins or Merge.
	Only bool
}
