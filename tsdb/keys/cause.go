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

// The causes, as Advice.Cause explains.
const (
	causeTimeFirst      = "time-first"
	causeSequential     = "sequential"
	causeHotEntity      = "hot-entity"
	causeHotHead        = "hot-head"
	causeBusyTenant     = "busy-tenant"
	causeFewFirstValues = "few-first-values"
	causeUnpaddedNumber = "unpadded-number"
	causeHashedPart     = "hashed-part"
	causePersonalData   = "personal-data"
	causeLongKey        = "long-key"
	causeLongNames      = "long-names"
	causeLargePayload   = "large-payload"
	causeManyFamilies   = "many-families"
	causeWidePrefix     = "wide-prefix"
)
