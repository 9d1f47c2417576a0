package calls

import (
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// List are the calls.
var List = []Call{
	// A repository is bound to one tenant.
	{Func: (*tsdb.Repository[int]).Put, Tenants: One, Operation: "Put"},
	{Func: (*tsdb.Repository[int]).PutIfAbsent, Tenants: One, Operation: "PutIfAbsent"},
	{Func: (*tsdb.Repository[int]).PutMany, Tenants: One, Operation: "Put"},
	{Func: (*tsdb.Repository[int]).Get, Tenants: One, Operation: "Get"},
	{Func: (*tsdb.Repository[int]).Latest, Tenants: One, Operation: "Latest"},
	{Func: (*tsdb.Repository[int]).LatestN, Tenants: One, Operation: "LatestN"},
	{Func: (*tsdb.Repository[int]).AsOf, Tenants: One, Operation: "AsOf"},
	{Func: (*tsdb.Repository[int]).Range, Tenants: One, Operation: "Range"},
	{Func: (*tsdb.Repository[int]).Page, Tenants: One, Operation: "Page"},
	{Func: (*tsdb.Repository[int]).LatestMany, Tenants: One, Operation: "LatestMany"},
	{Func: (*tsdb.Repository[int]).LatestFields, Tenants: One, Operation: "LatestFields"},
	{Func: (*tsdb.Repository[int]).LatestFieldsMany, Tenants: One, Operation: "LatestFieldsMany"},
	{Func: (*tsdb.Repository[int]).Delete, Tenants: One, Operation: "Delete"},
	{Func: (*tsdb.Repository[int]).DeleteRange, Tenants: One, Operation: "DeleteRange"},
	{Func: (*tsdb.Repository[int]).DeletePrefix, Tenants: One, Operation: "DeletePrefix"},
	{Func: (*tsdb.Repository[int]).Schema, Free: "works in memory or on local files"},
	{Func: (*tsdb.Repository[int]).Store, Free: "works in memory or on local files"},
	{Func: (*tsdb.Repository[int]).Tenant, Free: "works in memory or on local files"},
	{Func: (*tsdb.Repository[int]).WithID, Free: "works in memory or on local files"},
	{Func: (*tsdb.Repository[int]).Via, Free: "binds a writer, whose calls have costs"},
	{Func: (*tsdb.Schema[int]).FromContext, Free: "works in memory or on local files"},

	// All entities under a prefix.
	{Func: (*tsdb.Repository[int]).Under, Free: "works in memory or on local files"},
	{Func: tsdb.PrefixReader[int].Latest, Tenants: One, Operation: "under.Latest"},
	{Func: tsdb.PrefixReader[int].LatestN, Tenants: One, Operation: "under.LatestN"},
	{Func: tsdb.PrefixReader[int].LatestFields, Tenants: One, Operation: "under.LatestFields"},
	{Func: tsdb.PrefixReader[int].PageLatest, Tenants: One, Operation: "under.PageLatest"},
	{Func: tsdb.PrefixReader[int].Range, Tenants: One, Operation: "under.Range"},
	{Func: tsdb.PrefixReader[int].Merged, Tenants: One, Operation: "under.Merged"},
	{Func: tsdb.PrefixReader[int].Page, Tenants: One, Operation: "under.Page"},
	{Func: tsdb.PrefixReader[int].Entities, Tenants: One, Operation: "under.Entities"},
	{Func: tsdb.PrefixReader[int].PageEntities, Tenants: One, Operation: "under.PageEntities"},
	{Func: tsdb.PrefixReader[int].Children, Tenants: One, Operation: "under.Children"},
	{Func: tsdb.PrefixReader[int].Silent, Tenants: One, Operation: "under.Silent"},
	{Func: tsdb.PrefixReader[int].Follow, Tenants: One, Operation: "follow.Open"},
	{Func: (*tsdb.Repository[int]).Follow, Tenants: One, Operation: "follow.Open"},
	{Func: (*tsdb.Follower[int]).Points, Tenants: One, Operation: "follow.Poll"},

	// The writer delivers the points that a sink takes.
	{Func: (*tsdb.Sink[int]).Enqueue, Tenants: One, Operation: "Deliver"},
	{Func: (*tsdb.Sink[int]).TryEnqueue, Tenants: One, Operation: "Deliver"},
	{Func: (*tsdb.Sink[int]).EnqueueFunc, Tenants: One, Operation: "Deliver"},
	{Func: (*tsdb.Sink[int]).EnqueueMany, Tenants: One, Operation: "Deliver"},
	{Func: (*tsdb.Sink[int]).OnChange, Free: "works in memory or on local files"},

	// A writer holds points of all tenants.
	{Func: (*tsdb.Writer).Flush, Tenants: All, Operation: "Deliver"},
	{Func: (*tsdb.Writer).Close, Tenants: All, Operation: "Deliver"},
	{Func: (*tsdb.Writer).DeadLetters, Tenants: All, Free: "works in memory or on local files"},
	{Func: (*tsdb.Writer).ScrubJournal, Tenants: All, Free: "works in memory or on local files"},
	{Func: (*tsdb.Writer).DropDeadLetters, Tenants: All, Free: "works in memory or on local files"},
	{Func: (*tsdb.Writer).RetryDeadLetters, Tenants: All, Free: "changes the journal on disk; the points then cost what new ones do"},
	{Func: (*tsdb.Writer).Stats, Free: "works in memory or on local files"},

	// Operators open stores and prepare tables.
	{Func: (*tsdb.Store).Ping, Operation: "Ping"},
	{Func: (*tsdb.Store).Ensure, Operation: "Ensure"},
	{Func: (*tsdb.Store).Verify, Operation: "Verify"},
	{Func: (*tsdb.Store).Datasets, Operation: "Datasets"},
	{Func: (*tsdb.Store).EnsureView, Tenants: One, Operation: "EnsureView"},
	{Func: (*tsdb.Store).Close, Free: "first writes the fields noted in the last seconds, in the background"},
	{Func: (*tsdb.Store).Backup, Free: "links or copies files; Cloud Bigtable's stores refuse it"},
	{Func: (*tsdb.Store).NewWriter, Free: "reads its journal, whose points then cost what new ones do"},
	{Func: tsdb.Open, Free: "connects; the official client warms its connections and reads no rows"},
	{Func: embedded.New, Free: "works in memory or on local files"},
	{Func: embedded.Open, Free: "works in memory or on local files"},
	{Func: embedded.VerifyBackup, Free: "works in memory or on local files"},
	{Func: embedded.RestoreBackup, Free: "works in memory or on local files"},
	{Func: embedded.PackBackup, Free: "works in memory or on local files"},
	{Func: embedded.UnpackBackup, Free: "works in memory or on local files"},
	{Func: (*embedded.Server).Serve, Free: "serves other processes"},

	// Rollups.
	{Func: (*rollup.Reader[int]).Buckets, Tenants: One, Operation: "rollup.Buckets"},
	{Func: (*rollup.Reader[int]).Latest, Tenants: One, Operation: "rollup.Latest"},
	{Func: (*rollup.Reader[int]).Many, Tenants: One, Operation: "rollup.Many"},
	{Func: (*rollup.Reader[int]).Total, Tenants: One, Operation: "rollup.Total"},
	{Func: (*rollup.Reader[int]).Entities, Tenants: One, Operation: "rollup.Entities"},
	{Func: (*rollup.Reader[int]).Rebuild, Tenants: One, Operation: "rollup.Rebuild"},
	{Func: rollup.NewWorker, Free: "works in memory or on local files"},
	{Func: (*rollup.Worker).Pass, Tenants: All, Operation: "rollup.Pass"},
	{Func: (*rollup.Worker).Run, Tenants: All, Operation: "rollup.Pass"},
	{Func: (*rollup.Adder[int]).Add, Tenants: One, Operation: "rollup.Add"},
	{Func: (*rollup.Adder[int]).AddMany, Tenants: One, Operation: "rollup.Add"},
	{Func: (*rollup.Adder[int]).AddMessage, Tenants: One, Operation: "rollup.Add"},
	{Func: (*rollup.Adder[int]).AddFunc, Tenants: One, Operation: "Deliver"},

	// Tenants.
	{Func: tenants.Onboard, Tenants: One, Operation: "tenants.Onboard"},
	{Func: tenants.Load, Tenants: One, Operation: "tenants.Profile"},
	{Func: tenants.KeptFor, Tenants: All, Operation: "tenants.Profile"},
	{Func: tenants.Exists, Tenants: One, Operation: "tenants.Profile"},
	{Func: tenants.Usage, Tenants: One, Operation: "tenants.Usage"},
	{Func: tenants.Erase, Tenants: One, Operation: "tenants.Erase"},
	{Func: tenants.EraseEntity, Tenants: One, Operation: "tenants.Erase"},
	{Func: tenants.Erasure, Tenants: One, Operation: "tenants.Profile"},
	{Func: tenants.Readmit, Tenants: One, Operation: "tenants.Readmit"},
	{Func: tenants.ReadmitEntity, Tenants: One, Operation: "tenants.Readmit"},
	{Func: tenants.List, Tenants: All, Operation: "tenants.List"},
	{Func: tenants.Remove, Tenants: All, Operation: "tenants.Remove"},
	{Func: tenants.Retire, Tenants: All, Operation: "tenants.Remove"},
	{Func: tenants.Release, Tenants: All, Operation: "tenants.Remove"},

	// Files.
	{Func: transfer.Export, Tenants: One, Operation: "transfer.Export"},
	{Func: transfer.Import, Tenants: One, Operation: "transfer.Import"},

	// Tables of other programs, which are read in place and copied.
	{Func: transfer.Check, Free: "works in memory or on local files"},
	{Func: transfer.Recover, Free: "works in memory or on local files"},

	// Retention.
	{Func: retention.NewPlan, Operation: "retention.Plan"},
	{Func: retention.NewPlanFor, Operation: "retention.Plan"},
	{Func: (*retention.Plan).Apply, Operation: "retention.Apply"},

	// Reads of a table without the program's Go types.
	{Func: dynamic.FieldsOf, Tenants: One},
	{Func: dynamic.RecordFields, Tenants: One},
	{Func: dynamic.Open, Tenants: One},
	{Func: (*dynamic.View).Points, Tenants: One},
	{Func: (*dynamic.View).Put, Tenants: One},
	{Func: (*window.Aggregator[int]).Read, Tenants: One},
	{Func: (*window.Aggregator[int]).ReadGroups, Tenants: One, Operation: "window.Groups"},
	{Func: (*window.Aggregator[int]).ReadGroup, Tenants: One},
	{Func: window.Outages[int], Tenants: One},
	{Func: window.ReadUptime[int], Tenants: One},
	{Func: window.Align[int], Tenants: One},
	{Func: window.ReadLine[int], Tenants: One},
	{Func: (*window.Aggregator[int]).Source, Tenants: One, Free: "works in memory or on local files"},
}
