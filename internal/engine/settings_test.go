package engine_test

import (
	"math"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/tidemark-go/tidemark/internal/engine"
)

const day = 24 * time.Hour

func coldAfter(age time.Duration) *bigtable.TieredStorageConfig {
	return &bigtable.TieredStorageConfig{InfrequentAccess: &bigtable.TieredStorageIncludeIfOlderThan{Duration: age}}
}

// settings returns the age of the cold tier and the retention of the change stream; 0 for none.
func (r *rig) settings(t *testing.T) (cold, changes time.Duration) {
	t.Helper()
	info, err := r.admin.TableInfo(r.ctx, tableID)
	if err != nil {
		t.Fatal(err)
	}
	if info.TieredStorageConfig != nil {
		cold = info.TieredStorageConfig.InfrequentAccess.(*bigtable.TieredStorageIncludeIfOlderThan).Duration.(time.Duration)
	}
	if info.ChangeStreamRetention != nil {
		changes = info.ChangeStreamRetention.(time.Duration)
	}
	return cold, changes
}

// TestTableSettings: a table keeps its tiered storage and its change stream, each on its own, also when the folder is
// opened again.
func TestTableSettings(t *testing.T) {
	dir := t.TempDir()
	r := open(t, engine.Options{Dir: dir})
	want := func(what string, cold, changes time.Duration) {
		t.Helper()
		if a, b := r.settings(t); a != cold || b != changes {
			t.Errorf("%s: cold after %v and changes for %v, want %v and %v", what, a, b, cold, changes)
		}
	}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	must("create", r.admin.CreateTableFromConf(r.ctx, &bigtable.TableConf{
		TableID: tableID, ColumnFamilies: map[string]bigtable.Family{"f": {}}, DeletionProtection: bigtable.Protected,
		TieredStorageConfig: coldAfter(30 * day), ChangeStreamRetention: bigtable.ChangeStreamRetention(day),
	}))
	want("a new table", 30*day, day)
	must("change the tiers", r.admin.UpdateTableWithTieredStorageConfig(r.ctx, tableID, coldAfter(400*day+time.Millisecond)))
	want("after a change of the tiers", 400*day+time.Millisecond, day)
	must("change the stream", r.admin.UpdateTableWithChangeStream(r.ctx, tableID, bigtable.ChangeStreamRetention(7*day)))
	want("after a change of the stream", 400*day+time.Millisecond, 7*day)
	must("protection", r.admin.UpdateTableWithDeletionProtection(r.ctx, tableID, bigtable.Unprotected))
	must("a family", r.admin.CreateColumnFamily(r.ctx, tableID, "g"))
	want("after other changes", 400*day+time.Millisecond, 7*day)
	r.disconnect(t)
	must("close", r.Close())
	r = open(t, engine.Options{Dir: dir})
	want("opened again", 400*day+time.Millisecond, 7*day)
	must("remove the tiers", r.admin.UpdateTableRemoveTieredStorageConfig(r.ctx, tableID))
	want("without tiers", 0, 7*day)
	must("disable the stream", r.admin.UpdateTableDisableChangeStream(r.ctx, tableID))
	want("without a change stream", 0, 0)
	r.disconnect(t)
	must("close", r.Close())
	r = open(t, engine.Options{Dir: dir})
	want("opened again", 0, 0)
	must("delete", r.admin.DeleteTable(r.ctx, tableID))
}

// TestRefusedTableSettings: values outside the service's limits change nothing.
func TestRefusedTableSettings(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	update := func(m *adminpb.Table, paths ...string) error {
		m.Name = fullName
		_, err := r.UpdateTable(r.ctx, &adminpb.UpdateTableRequest{Table: m, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}})
		return err
	}
	tiers := func(d *durationpb.Duration) *adminpb.Table {
		return &adminpb.Table{TieredStorageConfig: &adminpb.TieredStorageConfig{InfrequentAccess: &adminpb.TieredStorageRule{
			Rule: &adminpb.TieredStorageRule_IncludeIfOlderThan{IncludeIfOlderThan: d},
		}}}
	}
	stream := func(d *durationpb.Duration) *adminpb.Table {
		return &adminpb.Table{ChangeStreamConfig: &adminpb.ChangeStreamConfig{RetentionPeriod: d}}
	}
	const tierPath, streamPath, agePath = "tiered_storage_config", "change_stream_config", "change_stream_config.retention_period"
	for name, err := range map[string]error{
		"29 days":                   update(tiers(durationpb.New(30*day-1)), tierPath),
		"no age":                    update(tiers(nil), tierPath),
		"invalid age":               update(tiers(&durationpb.Duration{Seconds: math.MaxInt64, Nanos: -1}), tierPath),
		"no rule":                   update(&adminpb.Table{TieredStorageConfig: &adminpb.TieredStorageConfig{InfrequentAccess: &adminpb.TieredStorageRule{}}}, tierPath),
		"an empty config":           update(&adminpb.Table{TieredStorageConfig: &adminpb.TieredStorageConfig{}}, tierPath),
		"a nil config":              r.admin.UpdateTableWithTieredStorageConfig(r.ctx, tableID, &bigtable.TieredStorageConfig{}),
		"under a day":               update(stream(durationpb.New(day-1)), agePath),
		"over 7 days":               update(stream(durationpb.New(7*day+time.Microsecond)), agePath),
		"a stream with no age":      update(stream(nil), streamPath),
		"no stream":                 update(&adminpb.Table{}, agePath),
		"a new table":               r.admin.CreateTableFromConf(r.ctx, &bigtable.TableConf{TableID: "u", TieredStorageConfig: coldAfter(day)}),
		"a new table with a stream": r.admin.CreateTableFromConf(r.ctx, &bigtable.TableConf{TableID: "u", ChangeStreamRetention: bigtable.ChangeStreamRetention(time.Hour)}),
	} {
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v, want InvalidArgument", name, err)
		}
	}
	if cold, changes := r.settings(t); cold != 0 || changes != 0 {
		t.Errorf("refused values were stored: cold after %v, changes for %v", cold, changes)
	}
	// One refused value refuses the whole update.
	both := tiers(durationpb.New(30 * day))
	both.ChangeStreamConfig = &adminpb.ChangeStreamConfig{RetentionPeriod: durationpb.New(time.Hour)}
	if err := update(both, tierPath, streamPath); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a valid and an invalid value: %v, want InvalidArgument", err)
	}
	if cold, _ := r.settings(t); cold != 0 {
		t.Errorf("half of an update was stored: cold after %v", cold)
	}
	if _, err := r.admin.TableInfo(r.ctx, "u"); status.Code(err) != codes.NotFound {
		t.Errorf("a table with a refused setting was created: %v", err)
	}
}

// TestOldBundlesGoWithTheTable: the deletion of a table removes the schema bundles that an earlier version stored.
func TestOldBundlesGoWithTheTable(t *testing.T) {
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := dial(t, e)
	defer func() { r.disconnect(t); _ = e.Close() }()
	r.create(t)
	if err := e.SetOldBundle(fullName); err != nil {
		t.Fatal(err)
	}
	if n, err := e.OldBundles(); n != 1 || err != nil {
		t.Fatalf("%d bundles are stored, %v; want 1", n, err)
	}
	if err := r.admin.DeleteTable(r.ctx, tableID); err != nil {
		t.Fatal(err)
	}
	if n, err := e.OldBundles(); n != 0 || err != nil {
		t.Errorf("%d bundles are left, %v", n, err)
	}
}
