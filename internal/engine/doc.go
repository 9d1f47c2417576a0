// Package engine is Bigtable on one machine: the data and table-admin API of Cloud Bigtable, stored in a folder by
// Pebble.
//
// The official client calls an [Engine] over TCP ([Engine.Register]) or in process (package inproc), with the same
// semantics, limits and status codes. Unsupported calls return Unimplemented.
//
// # Guarantees
//
//   - A row mutation is atomic, and each request reads the state of one moment ([Reader]). A mutation with an invalid
//     part changes nothing.
//   - A write is acknowledged once it is on disk, unless [Options.NoSync] is set, and reads see it. Concurrent writers
//     share one sync.
//   - No response depends on a write that a crash can undo. A read sees the newest state that is wholly on disk, and
//     waits for no sync. A conditional mutation that writes nothing waits until reads see what it found. Cells that the
//     collector removed may come back after a crash until it removes them again.
//   - Writes to one row are ordered: those that read first (conditional, read-modify-write, aggregates, deletes) hold
//     the row's lock until their result is visible.
//   - An addition with an idempotency token is applied once within 15 minutes, also after a crash.
//   - Damage on disk is reported ([ErrDamaged], status DataLoss) and never served. After damage, or a failed disk write
//     ([ErrStorage], status DataLoss), all writes fail until the engine is opened again. Reads of undamaged data still
//     work, but not with NoSync, and see what was on disk before the failed write.
//
// # Differences from the service
//
//   - A sum beyond int64 wraps around.
//   - Cells of one row are ordered by family name, then qualifier, then newest first.
//   - Through an authorized view, a read sees only the view's rows and columns; a write outside it gets
//     PermissionDenied.
//   - A mutation whose idempotency token was applied before changes nothing at all, not only no aggregate cell. A
//     start_time more than 15 minutes from the engine's clock gets FailedPrecondition.
//   - Tiered storage and change streams are stored and shown settings without effect.
//
// The official client's integration suite (v1.58.0) passes in its mode for emulators. In that for the service fail:
//
//   - No instance admin API (one folder is one instance, whatever its name): Admin, AdminCreateInstance,
//     AdminUpdateInstanceAndSyncClusters, Autoscaling, NodeScalingFactor, InstanceUpdate,
//     InstanceAdminClient_CreateAppProfile, InstanceAdminClient_UpdateAppProfile, AdminLogicalView,
//     AdminMaterializedView, DataMaterializedView.
//   - No SQL: Execute, CreateTableWithRowKeySchema, UpdateRowKeySchemaInTable, AdminSchemaBundle.
//   - No backups (copy the folder): AdminBackup, AdminCopyBackup, BackupIAM, AutomatedBackups.
//   - No users: TableIam, AuthorizedViewIAM. No key ring or Cloud Monitoring: AdminEncryptionInfo,
//     ExportBuiltInMetrics.
//   - LargeReadsWritesAndScans: without credentials the client's own connection refuses responses over 4 MiB.
package engine
