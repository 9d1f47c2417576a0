package advise

// What one server takes. Bigtable moves and splits ranges of rows between servers by their load, but a point belongs to one row,
// and a row to one server at a time.
const (
	// serverWrites is the number of writes a second of rows of 1 KB that the service's performance guide has stated for a node.
	// It has stated more since; the smaller figure warns earlier.
	serverWrites = 10_000
	// busyWrites is half of that: a server has other ranges too, and load comes in bursts.
	busyWrites = serverWrites / 2
	// noticeableWrites at one place is where it begins to show in Key Visualizer beside the rest of a server's load.
	noticeableWrites = serverWrites / 10
)

// When load is uneven.
const (
	// hotShare of all writes on one entity is a hot entity, if it also writes hotTimes as much as the average one: of three
	// equal entities each has a third.
	hotShare = 0.25
	hotTimes = 5
	// hotWrites a second are below what any server notices, however they are shared.
	hotWrites = 100
	// endShare of a group's writes on the tenth with the highest ids is three times what is fair, and endTimes is how much more
	// the median of that tenth writes than the median of the others: one hot entity among them does not make it uneven.
	endShare = 0.3
	endTimes = 3
	endPart  = 10
)

// How many values tell something. Fewer can be by chance what they look like.
const (
	fewestDates    = 2  // texts such as 2026-11-21 are hardly anything else
	fewestNumbers  = 8  // of ten digits one in ten looks like a time of these decades, eight in a row do not
	fewestInOrder  = 20 // in the order of their arrival, or as a counter
	fewestAtTheEnd = 50 // so that their upper tenth has a median
	fewestHashes   = 20
	fewestPersonal = 20 // of random numbers one in ten has a right check digit, nineteen of twenty do not
	// manyNetworks is double the networks in which nobody has machines alone; of fewer addresses each second has one of its own.
	manyNetworks = 1000
	// inOrder is which part of the values has to come in order: some overtake others on their way.
	inOrder = 0.95
	// hashes of which few letters are digits are missed one by one, not all together.
	hashes = 0.8
	// dense counters leave out three numbers of four at most.
	dense = 4
	// longestPadded is the number of digits up to which a number is one that somebody may want in order. Longer ones are ids.
	longestPadded = 15
)

// What few values of the first field are: fewValues or fewer hold mostRate of a tenant's writes, and each has at least
// manyEntities entities, so that it is not the entities that are few.
const (
	fewValues    = 4
	mostRate     = 0.9
	manyEntities = 20
)

// headWrites is how many writes a second a head row takes well: each leaves a version that stays until the next compaction.
const headWrites = 20

// Sizes in bytes.
const (
	maxKey     = 4096 // Bigtable's limit
	nearMaxKey = maxKey / 2
	longKey    = 256 // the guide asks for short keys: each row of an answer carries its own
	// longNames that each row repeats are worth a remark where the payload is smaller, and manyNames where it is not known.
	longNames = 64
	manyNames = 96
	// nearPayload is the part of the limit of a payload from which on a growing one will not fit before long.
	nearPayload = 0.5
	maxRow      = 100 << 20 // Bigtable advises against larger ones
	daySeconds  = 86_400
)

// Column families of a table. About 100 is what the guide advises against exceeding.
const (
	maxFamilies  = 100
	manyFamilies = 50
)

// widePrefix entities below the longest prefix take LatestUnder seconds: it reads a row for each.
const widePrefix = 10_000

const (
	minSalts = 2
	maxSalts = 100
)
