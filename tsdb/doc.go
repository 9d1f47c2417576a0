// Package tsdb keeps typed points of many tenants in one Bigtable table.
//
// # A store, a schema, a repository
//
// A [Store] is one open table. Package tsdb/embedded opens one in a folder of this machine, [Open] opens one on Cloud
// Bigtable; everything else is the same on both.
//
// A [Schema] is one kind of measurement: a dataset's name, the key fields that identify what is measured, a codec for its
// Go type, and a retention class. It is usually a package variable:
//
//	var readings = tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[Reading](), tsdb.SchemaOptions{
//		Retention: gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)},
//	})
//
// [Store.Ensure] makes table, families and catalogue fit the schemas at start; [Store.Verify] only compares, for programs
// without admin rights. A table that another version of a schema has written is refused, with what differs.
//
// A [Repository] is a schema bound to one tenant in one store. It does no I/O to make one, so it can be made for each
// request:
//
//	repo := readings.For(store, acme)
//
// No call on it can reach another tenant's rows. That does not rest on call sites: keys are made in one place, from a
// validated tenant.ID, and each row that comes back is checked before it is decoded.
//
// # Entities and time
//
// An [Entity] is what is measured: one value for each key field, from the one by which they lie together. Its points
// lie together in the table, newest first, so that the latest ones are one short scan, whatever the history. A point is
// identified by its entity and its time: writing it again replaces its value.
//
// In a schema with Identity an ID is part of that: two events of one instant are two points.
//
//	roof := tsdb.NewEntity("berlin", "roof-7")
//	err = repo.Put(ctx, roof, time.Now(), Reading{TempC: 21.5})
//
// Key fields hold text, or what [KeyFields] declares: numbers in their order, ids in reverse, UUIDs. [Schema.Entity] then makes
// entities of Go values.
//
// # Reading
//
// [Repository.Latest], [Repository.LatestN] and [Repository.AsOf] read the newest points, [Repository.Get] the one at a
// time, and [Repository.Range] those of an [Interval] as a sequence, newest first or with [OldestFirst]:
//
//	for p, err := range repo.Range(ctx, roof, tsdb.Between(from, to)) { … }
//
// [Repository.Page] reads the same page by page, for programs whose own clients ask for one at a time. Its cursors work for
// their tenant, dataset and [Query] alone, and with keys in the store's configuration a client can neither read nor make one.
//
// [Repository.LatestMany] reads the newest point of many entities at once, one answer each; [Repository.LatestUnder] that of
// every entity below a [Prefix], without knowing them; both cost as many reads as there are entities, whatever their
// histories, and in a schema with a [Head] one. [Repository.PageUnder] and [Repository.PageEntities] read the latter page by page. With [MaxStale] the store's last-value cache may answer. Package
// tsdb/window makes buckets of time out of any sequence of points.
//
// A point past its retention is invisible from the moment it expires, whether or not Bigtable has removed it yet, and a
// dead history costs nothing to read over. A stored payload that does not decode is one [PointError], in its place.
//
// # Writing, and what became of it
//
// Each write ends [Stored], [Rejected] or [Unknown]. A failed call returns a [WriteError] that matches [ErrRejected] (it is
// certainly not stored, and why) or [ErrUnknown] (an answer was lost; writing the point again is harmless).
// [Repository.PutMany] reports one [Outcome] a point: a bad one never hides what became of the others.
// [Repository.PutIfAbsent] and schemas with FirstWins keep the first value instead of the last.
//
// The official client retries without a bound and cannot tell which rows of a failed bulk write landed. So the store puts
// interceptors on its own connection and does the retrying itself: within a timeout, and only of what is safe to repeat.
// A program that brings its own *bigtable.Client gets the same with [ClientConfig] and [DialOptions].
//
// # Ingestion
//
// A [Writer] takes points one by one and sends them in batches: one for each store, shared by all schemas and tenants.
//
//	w, err := store.NewWriter(tsdb.WriterOptions{})
//	err = repo.Via(w).Enqueue(ctx, roof, t, r) // waits while the buffer is full
//	err = w.Close(ctx)                     // nil: everything is stored
//
// [Sink.EnqueueFunc] tells what became of a point, for a consumer that has a message to acknowledge; [Sink.EnqueueMany] waits for
// many. With [JournalOptions] points are acknowledged, as Journaled, once they are on this machine's disk, and delivered
// through outages, crashes and restarts.
//
// # Tenants
//
// Where the context of a call carries a tenant (tenant.NewContext, tenant.Bind), a repository of another one refuses the call with
// [ErrTenantMismatch]. With RequireTenant of [Config] one without a tenant is refused too, with [ErrNoTenant]; [Schema.FromContext] makes
// the repository of the context's tenant, which packages tenant/httptenant and tenant/grpctenant put there.
//
// Limits of [Config] hold each tenant to its own: a call over one is refused before anything is sent, with a *limit.Error (package
// tenant/limit). With Views the store reaches each tenant's rows through an authorized view alone, which [Store.EnsureView] makes, so
// that the service itself refuses the rows of others.
//
// Package tsdb/tenants is the life cycle of tenants. One that it erases is refused with [ErrErased], by every open store of the table
// within [ErasedWithin]. Package tsdb/transfer moves a tenant's points to a file and back.
//
// # Bounds
//
// Every call has a timeout ([Timeouts]) besides its context. Times, names, sizes and numbers of parts are checked before
// anything is sent; an [InvalidError] names the field, the value and the limit. Nothing in the package panics on input
// but [MustDefine], and nothing of the store runs on after [Store.Close].
//
// A program that is told to stop, and whose context has ended with it, makes its last writes under
// context.WithoutCancel: the timeouts still bound them.
//
// # What errors may show
//
// The package logs nothing unless it is given a logger ([Telemetry]), and then no error's text without IncludeErrorText. For those who log
// its errors, what may stand in them:
//
//   - An [InvalidError] repeats up to 64 bytes of what was refused: of an entity or a prefix that is the key, of a cursor and
//     of a secret nothing. What package tsdb/privacy refuses is not repeated; see CheckKeys of [SchemaOptions].
//   - A [PointError], and so PointErrors and the [BatchError] of a deletion, names its entity and time, whole. Its cause is the
//     codec's, which may quote a piece of the payload, as encoding/json does with a value of the wrong kind.
//   - An [UndeliveredError] names the tenant, entity and time of its first point. [Undelivered] and [DeadLetter] hold them as
//     data, and a dead letter its payload too.
//   - In a schema with Merge, the error of a Put that would change a fixed field shows both values.
//   - [ErrTenantMismatch] comes with both tenants;
//     [ErrErased], and an error that matches limit.ErrExceeded, with the tenant. [ErrForeignRow] shows nothing of the row.
//   - What the service answers is passed on as it came, with the table's name. It may name a row.
//
// To keep keys out of logs, log what errors.Is tells of an error, and of an InvalidError its Field and Limit. The same is safe
// to answer a client with.
//
// # Seen from outside
//
// A store tells OpenTelemetry's global providers of each call, with its retries, and of each request. [Telemetry] takes other
// providers, a logger, and [Hooks]. docs/telemetry.md lists the names.
package tsdb
