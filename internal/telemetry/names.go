package telemetry

// Scope is the name of the tracer and the meter.
const Scope = "github.com/tidemark-go/tidemark"

// SchemaURL is the version of the conventions that define the names.
const SchemaURL = "https://opentelemetry.io/schemas/1.41.0"

// System is the value of db.system.name.
const System = "gcp.bigtable"

// Other replaces values without their own attribute.
const Other = "_OTHER"

// The attributes of the conventions.
const (
	attrSystem    = "db.system.name"
	attrNamespace = "db.namespace"
	attrTable     = "db.collection.name"
	attrOperation = "db.operation.name"
	attrBatchSize = "db.operation.batch.size"
	attrStatus    = "db.response.status_code"
	attrRows      = "db.response.returned_rows"
	attrError     = "error.type"
	attrMethod    = "rpc.method"
)

// The SDK's own attributes.
const (
	attrDataset = "tidemark.dataset"
	attrTenant  = "tidemark.tenant"
	attrCalls   = "tidemark.requests"       // of a span: number of attempts, 1 if nothing was retried
	attrFailed  = "tidemark.batch.failed"   // of a span: writes of a batch that were not stored
	attrReason  = "tidemark.flush.reason"   // of a batch of the writer
	attrOutcome = "tidemark.outcome"        // of a point of the writer
	attrResult  = "tidemark.cache.result"   // of a lookup in the cache
	attrRollup  = "tidemark.rollup"         // the rollup's name
	attrAttempt = "tidemark.attempt"        // of an event: the number of the operation's attempt
	eventFailed = "tidemark.attempt.failed" // an attempt that failed
)

// The bucket boundaries of histograms. Those of durations come from the conventions; attempts use the same.
var (
	secondsBuckets = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}
	rowsBuckets    = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000}
)

// Name is an operation.
type Name uint8

// The operations. A batch has the name of one of its writes.
const (
	Put Name = iota
	PutIfAbsent
	Deliver // a writer's requests
	Get
	Latest
	LatestN
	AsOf
	Range
	Page
	LatestMany
	LatestFields
	LatestFieldsMany
	Delete
	DeleteRange
	DeletePrefix

	UnderLatest
	UnderLatestN
	UnderLatestFields
	UnderPageLatest
	UnderRange
	UnderMerged
	UnderPage
	UnderEntities
	UnderPageEntities
	UnderChildren
	UnderSilent
	WindowGroups

	FollowOpen
	FollowPoll

	Ping
	Ensure
	EnsureView
	Verify
	Datasets
	Upkeep // a store's background reads: erasure marks, retention classes

	RollupAdd
	RollupBuckets
	RollupLatest
	RollupMany
	RollupTotal
	RollupEntities
	RollupRebuild
	RollupPass

	TenantOnboard
	TenantList
	TenantProfile
	TenantUsage
	TenantErase
	TenantReadmit
	DatasetRemove

	TransferExport
	TransferImport

	RetentionPlan
	RetentionApply

	Operations // the number of operations
)

// operations holds the names of the operations; reads means that the operation returns rows.
var operations = [Operations]struct {
	name  string
	reads bool
}{
	Put: {"Put", false}, PutIfAbsent: {"PutIfAbsent", false}, Deliver: {"Deliver", false},
	Get: {"Get", true}, Latest: {"Latest", true}, LatestN: {"LatestN", true}, AsOf: {"AsOf", true},
	Range: {"Range", true}, Page: {"Page", true}, LatestMany: {"LatestMany", true},
	LatestFields: {"LatestFields", true}, LatestFieldsMany: {"LatestFieldsMany", true},
	Delete: {"Delete", false}, DeleteRange: {"DeleteRange", false}, DeletePrefix: {"DeletePrefix", false},
	Ping: {"Ping", false}, Ensure: {"Ensure", false}, EnsureView: {"EnsureView", false}, Verify: {"Verify", false}, Datasets: {"Datasets", true},
	Upkeep:    {"Upkeep", false},
	RollupAdd: {"rollup.Add", false}, RollupBuckets: {"rollup.Buckets", true}, RollupLatest: {"rollup.Latest", true},
	RollupMany: {"rollup.Many", true}, RollupTotal: {"rollup.Total", true}, RollupEntities: {"rollup.Entities", true}, RollupRebuild: {"rollup.Rebuild", false}, RollupPass: {"rollup.Pass", false},
	TenantOnboard: {"tenants.Onboard", false}, TenantList: {"tenants.List", true}, TenantProfile: {"tenants.Profile", false},
	TenantUsage: {"tenants.Usage", false}, TenantErase: {"tenants.Erase", false}, TenantReadmit: {"tenants.Readmit", false}, DatasetRemove: {"tenants.Remove", false},
	TransferExport: {"transfer.Export", true}, TransferImport: {"transfer.Import", false},
	RetentionPlan: {"retention.Plan", false}, RetentionApply: {"retention.Apply", false},
	UnderLatest: {"under.Latest", true}, UnderLatestN: {"under.LatestN", true}, UnderLatestFields: {"under.LatestFields", true}, UnderPageLatest: {"under.PageLatest", true},
	UnderRange: {"under.Range", true}, UnderMerged: {"under.Merged", true}, UnderPage: {"under.Page", true},
	UnderEntities: {"under.Entities", true}, UnderPageEntities: {"under.PageEntities", true}, UnderChildren: {"under.Children", true},
	UnderSilent: {"under.Silent", true}, WindowGroups: {"window.Groups", true},
	FollowOpen: {"follow.Open", false}, FollowPoll: {"follow.Poll", true},
}

// String returns the name of the operation on one item, as in db.operation.name.
func (n Name) String() string { return operations[n].name }
