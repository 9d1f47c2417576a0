// Package reach counts how often rare branches are reached, for the tests that have to reach them. In a program that
// does not call Count, a branch costs the check of a variable that is never written.
package reach

import "sync/atomic"

// Branch is a branch that is rarely taken.
type Branch uint8

// The branches. The long run of internal/proof/history has to reach each of them.
const (
	ResumedScan       Branch = iota // a scan goes on behind its last row, because its stream broke
	RepeatedWrite                   // a write of one row is sent again
	RepeatedEntries                 // some entries of a bulk write are sent again, and others not
	OwnInsertion                    // an insertion finds its own row after a lost answer
	ReplacedInsertion               // an insertion finds another row after a lost answer
	VanishedRow                     // an insertion was refused because of a row that is gone by now
	OutrunMerge                     // another writer changes the row before a merge
	OwnMerge                        // a merge finds that the row holds it
	RepeatedToken                   // an addition is sent again with its token
	KnownToken                      // the engine has seen a token before
	KnownMessage                    // a row has seen a message before
	KnownEvents                     // a row has seen events of a journal before

	SecondRead // a read that takes long is sent again
	ReadAlone  // an entity of a shared request is read again alone
	SharedRead // a read of the cache has several callers
	StaleRead  // a read of the cache is not kept, because a write has ended meanwhile

	RetriedBatch  // points of a batch are sent again later
	OutrunBucket  // another worker changes the row of a bucket before it is replaced
	ResumedSweep  // a follower goes on within a sweep
	StolenErasure // another call takes an erasure over
	AwaitedView   // an answer waits until readers see what it depends on
	TornLog       // a log ends within a record
	KnownRow      // a read finds the first row of a range in memory

	branches
)

var names = [branches]string{
	ResumedScan: "resumed scan", RepeatedWrite: "repeated write", RepeatedEntries: "repeated entries", OwnInsertion: "own insertion",
	ReplacedInsertion: "replaced insertion", VanishedRow: "vanished row", OutrunMerge: "outrun merge", OwnMerge: "own merge",
	RepeatedToken: "repeated token", KnownToken: "known token", KnownMessage: "known message", KnownEvents: "known events",
	SecondRead: "second read", ReadAlone: "read alone", SharedRead: "shared read", StaleRead: "stale read",
	RetriedBatch: "retried batch", OutrunBucket: "outrun bucket", ResumedSweep: "resumed sweep",
	StolenErasure: "stolen erasure", AwaitedView: "awaited view", TornLog: "torn log", KnownRow: "known row",
}

// String returns the branch's name.
func (b Branch) String() string { return names[b] }

var (
	counting bool
	counts   [branches]atomic.Int64
)

// Count begins to count. Call it before anything else runs, as in TestMain.
func Count() { counting = true }

// Point counts a branch.
func Point(b Branch) {
	if counting {
		counts[b].Add(1)
	}
}

// Counts returns how often each branch was reached.
func Counts() map[Branch]int64 {
	all := make(map[Branch]int64, branches)
	for b := range branches {
		all[b] = counts[b].Load()
	}
	return all
}
