package advise

// The causes of findings, as tsdb exports them.
const (
	TimeFirst      = "time-first"
	Sequential     = "sequential"
	HotEntity      = "hot-entity"
	HotHead        = "hot-head"
	BusyTenant     = "busy-tenant"
	FewFirstValues = "few-first-values"
	UnpaddedNumber = "unpadded-number"
	HashedPart     = "hashed-part"
	PersonalData   = "personal-data"
	LongKey        = "long-key"
	LongNames      = "long-names"
	LargePayload   = "large-payload"
	ManyFamilies   = "many-families"
	WidePrefix     = "wide-prefix"
)
