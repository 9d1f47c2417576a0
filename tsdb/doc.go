// Package tsdb stores time-series points of many tenants in one Bigtable table.
//
// # Store, schema, repository
//
// A [Store] is one open table. [Open] opens it on Cloud Bigtable, package tsdb/embedded in a local folder.
//
// A [Schema] describes one kind of measurement: the dataset's name, the key fields of its entities, a codec for its Go
// type, and a retention class:
//
//	var readings = tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[Reading](), tsdb.SchemaOptions{
//		Retention: gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)},
//	})
//
// At start a program calls [Store.Ensure], which creates what the table lacks, or [Store.Verify], which only compares
// and needs no admin rights. Both return a [ConflictError] if table and schema differ.
//
// A [Repository] is a schema bound to one tenant in one store. Making one costs no I/O:
//
//	repo := readings.For(store, acme)
//
// # Entities and time
//
// An [Entity] is what is measured: one value per key field, most significant first. Entities that share leading fields
// are stored next to each other, the points of an entity newest first.
//
//	roof := tsdb.NewEntity("berlin", "roof-7")
//	err = repo.Put(ctx, roof, time.Now(), Reading{TempC: 21.5})
//
// Entity and time identify a point: writing it again replaces its value. With Identity in [SchemaOptions], for events,
// an ID does too.
//
// Key fields hold text. [KeyFields] also declares numbers, reversed IDs, domain names and UUIDs; [Schema.Entity] makes
// entities from their Go values.
//
// # Reading
//
//   - One point: [Repository.Latest], [Repository.AsOf], [Repository.Get].
//   - Several points of one entity: [Repository.LatestN], [Repository.Range], [Repository.Page].
//   - The newest points of a list of entities: [Repository.LatestMany].
//   - The newest value of each field: [Repository.LatestFields], [Repository.LatestFieldsMany].
//   - Everything of all entities under a [Prefix]: [Repository.Under] returns a [PrefixReader].
//   - New points as they arrive: [Repository.Follow], [PrefixReader.Follow].
//
// A sequence ends its requests when the loop ends:
//
//	for p, err := range repo.Range(ctx, roof, tsdb.Between(from, to), tsdb.OldestFirst) { … }
//
// Expired points disappear from reads immediately. A payload that does not decode is reported as a [PointError]; the
// other points are still returned. Package tsdb/window aggregates points by time, package tsdb/rollup stores
// aggregates.
//
// # Writing and outcomes
//
// Each write ends [Stored], [Rejected] or [Unknown]. A failed write returns a [WriteError]: it matches [ErrRejected] if
// the point is certainly not stored, and [ErrUnknown] if a response was lost. Writing the point again is safe.
// [Repository.PutMany] returns one [Outcome] per point. [Repository.PutIfAbsent], and schemas with FirstWins, keep the
// first value of a point; schemas with Merge combine fields.
//
// The store retries instead of the official client, by interceptors on its connection: within a timeout, and only what
// is safe to repeat. A program with its own *bigtable.Client gets the same from [ClientConfig] and [DialOptions].
//
// # Ingestion
//
// A [Writer] sends points in batches.
//
//	w, err := store.NewWriter(tsdb.WriterOptions{})
//	err = repo.Via(w).Enqueue(ctx, roof, t, r) // waits while the buffer is full
//	err = w.Close(ctx)                         // nil: everything is stored
//
// [Sink.EnqueueFunc] reports the outcome of each point. With [JournalOptions] a point is [Journaled] when it is on the
// local disk; the writer delivers it later, also after outages and crashes. [Sink.OnChange] leaves out points that say
// nothing new.
//
// # Tenants
//
// If the context carries another tenant (tenant.NewContext, tenant.Bind), a call fails with [ErrTenantMismatch].
// [Schema.FromContext] makes the repository of the context's tenant. [StoreOptions] has RequireTenant, Limits and
// Views.
//
// Package tsdb/tenants erases tenants and manages their profiles. Calls for an erased tenant fail with [ErrErased]. A
// store that cannot read the marks of erasures uses those it has read last; one that has never read them refuses reads
// and writes. Package tsdb/transfer copies points to a file and back.
//
// # Bounds
//
// [Timeouts] bound every call. Input is checked before anything is sent. Only [MustDefine] panics on invalid input.
// After [Store.Close] the store runs no goroutines.
//
// # What errors may show
//
// The package logs only with a logger in [Telemetry], and error texts only with IncludeErrorText. Texts of errors may
// contain:
//
//   - [InvalidError]: up to 64 bytes of the refused value, such as the key of an entity; never cursors, secrets, or
//     values that package tsdb/keys refuses (CheckKeys in [SchemaOptions]).
//   - [PointError], and so [PointErrors] and the [BatchError] of a deletion: entity and time of the point, and the
//     codec's error, which may quote the payload (encoding/json does).
//   - [UndeliveredError]: tenant, entity and time of its first point.
//   - Put in a schema with Merge and Immutable: both values of the field that would change.
//   - [ErrTenantMismatch]: both tenants. [ErrErased] and limit.ErrExceeded: the tenant. [ErrForeignRow]: nothing of the
//     row.
//   - Errors of the service: unchanged, with the table's name. They may name a row.
//
// To keep keys out of logs and responses, use only the sentinel that errors.Is matches, and Field and Limit of an
// InvalidError. Package tsdb/errstatus maps errors to HTTP and gRPC statuses.
package tsdb
