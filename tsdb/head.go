package tsdb

// Head asks for head rows: beside its points each entity has one row that holds its newest few as versions, so that
// LatestMany is one request for many entities, and LatestUnder and Entities read one row an entity. Reads of one entity go
// to its points, which cost the same. Head is part of the stored format and cannot change. The zero Head is none.
//
// The price is paid by writes. Each sets two rows instead of one, and the head of an entity that is written often is a hot
// row that holds all versions since Bigtable last collected; beyond some tens of writes a second to one entity go without.
// In a schema with FirstWins the head is a second request, in one with Merge, or with FirstWins and Classes, three more.
// Deletions mend the head, at the cost of a few requests an entity.
//
// Where classes that points are written in, or were, differ in their age, older points can outlive newer ones that took their
// place in the head. LatestMany then reads the points too of those entities whose head shows too few that no class lets expire
// yet, and LatestUnder and Entities go by the points alone.
//
// A write is stored once both rows are, and unknown where only one is known to be; writing it again, as anything unknown,
// puts it right, and so does repeating a deletion that failed. Two rows are not one: of two writers that write different
// values of one point at the same moment, or of one that writes a point while another deletes it, each may be the last in
// one of the rows. The points then say what is so, and the head follows when that point is written or deleted again.
// With FirstWins, or where a point has one value, that is no matter for writers.
type Head struct {
	// Points is how many of an entity's newest points its head keeps, 1 to 100. Zero is no head. A schema with heads needs
	// the precision Milliseconds, that of the cells' timestamps by which a head tells its points apart, and its payloads
	// share 10 MiB: for 5 points each may have 2 MiB.
	Points int
	// Only keeps the head and no other rows: a short history of the newest points, in one row an entity, with every call of
	// a repository. A point behind the newest ones is gone as soon as they are stored; until Bigtable has collected it, it
	// may show again when a newer one is deleted or, in a shorter class, expires, and PutIfAbsent may find it. It goes with
	// neither FirstWins nor Merge.
	Only bool
}
