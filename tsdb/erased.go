package tsdb

import "time"

// ErasedWithin is how long it takes at most until every open store of a table honours an erasure mark: until a store refuses
// reads and writes of an erased tenant with ErrErased, and its writers drop the points that they hold of it.
const ErasedWithin = 10 * time.Second
