// Package engine is Bigtable on one machine: the data and table-admin API of Cloud Bigtable, stored in a folder by
// Pebble.
//
// An [Engine] implements the service's two gRPC servers. The official client can call it over TCP ([Engine.Register])
// or in process (package inproc), with the same semantics, limits and status codes. Calls that it does not support
// return Unimplemented.
//
// # Guarantees
//
//   - A row mutation is atomic, and a reader sees each request's state at one moment ([Reader]).
//   - A write is acknowledged after it is on disk, unless [Options.NoSync] is set. Concurrent writers share one sync.
//   - No response depends on a write that a crash can undo: a read, or a conditional mutation that writes nothing, waits for
//     the sync of the writes that it found. It waits for no others, and a read waits at most once. Cells that the collector
//     removed may come back after a crash, and are removed again. With NoSync nothing waits.
//   - Writes to one row are ordered: those that read first (conditional, read-modify-write, aggregates, deletes) hold the
//     row's lock until their result is visible.
//   - A row mutation with an invalid part changes nothing.
//   - An addition with an idempotency token is applied once within 15 minutes, also after a crash.
//   - Damage on disk is reported ([ErrDamaged], status DataLoss) and never served. After damage, or after a failed disk write
//     ([ErrStorage], status DataLoss), the engine accepts no more writes until it is opened again. Each write and each
//     conditional mutation then fails at once, and so does a read that finds a write that may not be on disk. Other reads
//     still work, but not with NoSync.
//
// # Differences from the service
//
//   - A sum beyond int64 wraps around, as two's complement does.
//   - Cells of one row are ordered by the name of their family, then qualifier, then newest first.
//   - Through an authorized view, a read sees only the view's rows and columns, as if nothing else existed; a write that
//     names anything outside is refused with PermissionDenied.
//   - A mutation with an idempotency token that was applied before changes nothing at all, not only no aggregate cell. The start_time
//     may be up to 15 minutes before or after the engine's clock; beyond that the mutation is refused with FailedPrecondition.
//   - There is one cluster, so consistency tokens are consistent at once.
//   - Tiered storage and change streams are settings that a table keeps and shows. All cells stay in one tier, and the calls
//     that read a change stream return Unimplemented.
//
// The integration suite of the official client (v1.58.0) passes in its mode for emulators. In its mode for the service,
// these tests fail, each for the given reason:
//
//   - Admin, AdminCreateInstance, AdminUpdateInstanceAndSyncClusters, Autoscaling, NodeScalingFactor, InstanceUpdate,
//     InstanceAdminClient_CreateAppProfile, InstanceAdminClient_UpdateAppProfile: there is no instance admin API. One folder
//     is one instance, whatever its name.
//   - AdminLogicalView, AdminMaterializedView, DataMaterializedView: views that are queries belong to that API, too.
//   - Execute: there is no SQL. CreateTableWithRowKeySchema, UpdateRowKeySchemaInTable, AdminSchemaBundle: row key schemas and
//     schema bundles serve SQL only.
//   - AdminBackup, AdminCopyBackup, BackupIAM, AutomatedBackups: to back up a folder, copy it.
//   - TableIam, AuthorizedViewIAM: there are no users and so no policies.
//   - AdminEncryptionInfo, ExportBuiltInMetrics: they need a key ring and Cloud Monitoring.
//   - LargeReadsWritesAndScans: without credentials the client's own connection refuses responses over 4 MiB, and a
//     response contains a cell of 5 MB. With the larger limit that the client otherwise has, the test passes.
package engine
