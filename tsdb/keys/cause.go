package keys

import "strconv"

// Severity is how much an Advice matters: Info, Warning or Critical. The zero Severity is Info.
type Severity int

// The severities.
const (
	// Info is useful to know while keys can still be changed. Nothing fails because of it.
	Info Severity = iota
	// Warning will cost throughput or slow reads as load or data grow.
	Warning
	// Critical fails with this sample: one server gets more than it can take, points are refused, or keys show
	// personal data.
	Critical
)

// String returns info, warning or critical.
func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warning:
		return "warning"
	case Critical:
		return "critical"
	}
	return "severity " + strconv.Itoa(int(s))
}

// MarshalText implements encoding.TextMarshaler.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Cause identifies the subject of an Advice. Causes are stable: a program may ignore the ones that it accepts. Each
// is reported from a threshold on:
//
//   - time-first: a key field of times with no other field, or too few values, before it. All new points are then
//     written in one place. Behind other fields it is reported from 1,000 points a second below one prefix. Numbers
//     that could be times count as ids if at least 50 of them (20 without gaps) are written evenly, old and new
//     alike.
//   - sequential: a key field whose new values sort after the old ones: counters, ids that begin with the time
//     (UUIDs of versions 6 and 7, ULIDs, KSUIDs, snowflakes), or values that grow according to Sample.Arrival. It is
//     a Warning if the highest tenth of the values has at least three tenths of the writes. If writes are even or
//     rates unknown, it is an Info for the first field only. Numbers after a text (device-0042) are then reported
//     only if Sample.Arrival shows that they grow, and ids by time only if rates are unknown or Arrival shows it.
//   - hot-entity: an entity with a quarter of all writes, five times the average, from 100 points a second; or any
//     entity with 5,000, half of what one server takes. No key can spread one entity.
//   - hot-head: an entity with 20 points a second or more in a schema with Head.
//   - busy-tenant: a tenant with 10,000 points a second or more, about what one server takes, in a schema without
//     Salts.
//   - few-first-values: a first field where up to four values, with many entities each, have nine tenths of a
//     tenant's 5,000 or more points a second. With less load, few values do no harm.
//   - unpadded-number: a key field of numbers whose text does not sort by number. Numbers of more than 15 digits
//     count as ids.
//   - hashed-part: a key field of hashes or random ids, different for each entity, before a field with few values
//     that could group the entities. Random ids at the end of a key, or with entities below them, are fine.
//   - personal-data: personal data that CheckPersonal finds in keys and in tenants' names. The texts do not show
//     it. At least 20 IPv4 addresses of many networks are an Info, because they may belong to persons or to
//     machines.
//   - long-key: a row key of 2 KiB or more, of 4 KiB at most; or keys with a median of 256 bytes or more.
//   - long-names: names of tenant, dataset, retention class and column that together take 64 bytes or more, and more
//     than the payload; 96 bytes if payloads are unknown.
//   - large-payload: a payload of half the dataset's limit or more. The limit is 10 MiB, or less with Head or Merge.
//   - many-families: 50 column families or more, of 100 at most, for the dataset, Sample.OtherDatasets and the store
//     itself.
//   - wide-prefix: a prefix of all key fields but the last with 10,000 entities or more below it, in a schema
//     without Head.
type Cause string

const (
	causeTimeFirst      Cause = "time-first"
	causeSequential     Cause = "sequential"
	causeHotEntity      Cause = "hot-entity"
	causeHotHead        Cause = "hot-head"
	causeBusyTenant     Cause = "busy-tenant"
	causeFewFirstValues Cause = "few-first-values"
	causeUnpaddedNumber Cause = "unpadded-number"
	causeHashedPart     Cause = "hashed-part"
	causePersonalData   Cause = "personal-data"
	causeLongKey        Cause = "long-key"
	causeLongNames      Cause = "long-names"
	causeLargePayload   Cause = "large-payload"
	causeManyFamilies   Cause = "many-families"
	causeWidePrefix     Cause = "wide-prefix"
)
