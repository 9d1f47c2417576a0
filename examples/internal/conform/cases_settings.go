package conform

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
)

const day = 24 * time.Hour

// onSettings runs a case of the table's settings, and then removes them.
func onSettings(see func(e *env) error, shown func(*adminpb.Table) string) func(*env) (string, error) {
	return func(e *env) (string, error) {
		refused := see(e)
		t, err := e.admin.GetTable(e.adminAt("name", e.path(e.table)), &adminpb.GetTableRequest{Name: e.path(e.table), View: adminpb.Table_FULL})
		if err != nil {
			return "", err
		}
		if t.GetTieredStorageConfig() != nil {
			err = e.tables.UpdateTableRemoveTieredStorageConfig(e.ctx, e.table)
		}
		if t.GetChangeStreamConfig() != nil {
			err = errors.Join(err, e.tables.UpdateTableDisableChangeStream(e.ctx, e.table))
		}
		if refused == nil || err != nil {
			return shown(t), err
		}
		return code(refused)
	}
}

func (e *env) setCold(age time.Duration) error {
	return e.tables.UpdateTableWithTieredStorageConfig(e.ctx, e.table, &bigtable.TieredStorageConfig{
		InfrequentAccess: &bigtable.TieredStorageIncludeIfOlderThan{Duration: age},
	})
}

func (e *env) setChanges(keep time.Duration) error {
	return e.tables.UpdateTableWithChangeStream(e.ctx, e.table, bigtable.ChangeStreamRetention(keep))
}

func shownCold(t *adminpb.Table) string {
	if c := t.GetTieredStorageConfig(); c != nil {
		return fmt.Sprint("cold after ", c.GetInfrequentAccess().GetIncludeIfOlderThan().AsDuration())
	}
	return "one tier"
}

func shownChanges(t *adminpb.Table) string {
	if c := t.GetChangeStreamConfig(); c != nil {
		return fmt.Sprint("kept for ", c.GetRetentionPeriod().AsDuration())
	}
	return "no change stream"
}

// Only instances on SSD have tiered storage: on others its cases show the refusal.
var settingTests = []test{
	{
		name: "tiers/stored", claim: "a table keeps the age from which its cells are cold", source: tierPage, want: "cold after 960h0m0s",
		see: onSettings(func(e *env) error { return errors.Join(e.setCold(30*day), e.setCold(40*day)) }, shownCold),
	},
	{
		name: "tiers/removed", claim: "tiered storage can be removed", source: tierPage, want: "one tier",
		see: onSettings(func(e *env) error {
			return cmp.Or(e.setCold(30*day), e.tables.UpdateTableRemoveTieredStorageConfig(e.ctx, e.table))
		}, shownCold),
	},
	{
		name: "tiers/too young", claim: "an age of less than 30 days is refused", source: adminAPI + "#tieredstoragerule", want: "InvalidArgument",
		see: onSettings(func(e *env) error { return e.setCold(30*day - time.Second) }, shownCold),
	},
	{
		name: "changes/stored", claim: "a table keeps the retention period of its change stream", source: changePage, want: "kept for 72h0m0s",
		see: onSettings(func(e *env) error { return errors.Join(e.setChanges(day), e.setChanges(3*day)) }, shownChanges),
	},
	{
		name: "changes/disabled", claim: "a change stream can be disabled", source: changePage, want: "no change stream",
		see: onSettings(func(e *env) error {
			return cmp.Or(e.setChanges(day), e.tables.UpdateTableDisableChangeStream(e.ctx, e.table))
		}, shownChanges),
	},
	{
		name: "changes/too long", claim: "a change stream of more than 7 days is refused", source: adminAPI + "#changestreamconfig", want: "InvalidArgument",
		see: onSettings(func(e *env) error { return e.setChanges(7*day + time.Second) }, shownChanges),
	},
}
