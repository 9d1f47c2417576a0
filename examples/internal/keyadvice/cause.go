package keyadvice

// The severities, as Advice.Severity explains, in their order.
const (
	info     = "info"
	warning  = "warning"
	critical = "critical"
)

var severities = []string{info, warning, critical}

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
