package keyadvice

// The capacity of one server. Bigtable moves and splits ranges of rows between servers by load. But a point belongs
// to one row, and a row to one server at a time.
const (
	// serverWrites is the number of writes a second of 1 KB rows that the service's performance guide has stated for
	// a node. The guide now states more; the smaller figure warns earlier.
	serverWrites = 10_000
	// busyWrites is half of that: a server has other ranges too, and load comes in bursts.
	busyWrites = serverWrites / 2
	// noticeableWrites in one place become visible in Key Visualizer next to the rest of a server's load.
	noticeableWrites = serverWrites / 10
)

// Thresholds of uneven load.
const (
	// hotShare of all writes makes an entity hot, if it also writes hotTimes the average: of three equal entities,
	// each has a third of the writes.
	hotShare = 0.25
	hotTimes = 5
	// hotWrites a second are too few to matter to any server.
	hotWrites = 100
	// endShare is the share of a group's writes on the tenth with the highest ids: three times the fair share.
	// endTimes is how much more the median of that tenth writes than the median of the others: so one hot entity does
	// not make the load uneven.
	endShare = 0.3
	endTimes = 3
	endPart  = 10
)

// How many values are needed for a conclusion. Fewer values may look that way by chance.
const (
	fewestDates    = 2  // texts such as 2026-11-21 are almost always dates
	fewestNumbers  = 8  // one in ten numbers of ten digits looks like a time of these decades, but not eight of eight
	fewestInOrder  = 20 // in the order of their arrival, or as a counter
	fewestAtTheEnd = 50 // enough for a median of the upper tenth
	fewestHashes   = 20
	fewestPersonal = 20 // one in ten random numbers has a correct check digit, but not nineteen of twenty
	// manyNetworks is twice the number of networks that is too high for one owner of machines. Of fewer addresses, at
	// least every second one must have its own network.
	manyNetworks = 1000
	// inOrder is the share of the values that must be in order: some are delayed.
	inOrder = 0.95
	// hashes is the share of values that must look random: a hash with few digits may be missed.
	hashes = 0.8
	// dense counters omit at most three of four numbers.
	dense = 4
	// longestPadded is the most digits of a number whose order may matter. Longer numbers are ids.
	longestPadded = 15
)

// Few values of the first field: at most fewValues have mostRate of a tenant's writes, and each has at least
// manyEntities entities, because a small number of entities is not the problem.
const (
	fewValues    = 4
	mostRate     = 0.9
	manyEntities = 20
)

// headWrites is how many writes a second a head row handles well: each leaves a version that stays until the next
// compaction.
const headWrites = 20

// Sizes in bytes.
const (
	maxKey     = 4096 // Bigtable's limit
	nearMaxKey = maxKey / 2
	longKey    = 256 // the guide recommends short keys: each row of a response has its key
	// longNames is reported if the payload is smaller than the names that each row repeats, manyNames if the payload
	// is unknown.
	longNames = 64
	manyNames = 96
	// nearPayload is the part of the payload limit from which a growing payload will soon be too large.
	nearPayload = 0.5
	maxRow      = 100 << 20 // Bigtable advises against larger ones
	daySeconds  = 86_400
)

// Column families of a table. The guide recommends at most about 100.
const (
	maxFamilies  = 100
	manyFamilies = 50
)

// widePrefix entities below the longest prefix take Under(prefix).Latest seconds: it reads a row for each.
const widePrefix = 10_000

const (
	minSalts = 2
	maxSalts = 100
)
