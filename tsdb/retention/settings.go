package retention

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// The settings of a table that plans compare, as in Item.Setting.
const (
	// TieredStorage is the age from which the table's cells move to Bigtable's infrequent access tier: see gc.Class.ColdAfter.
	TieredStorage = "tiered storage"
	// ChangeStream is how long the table keeps its changes for readers of its change stream: see Plan.WithChangeStream.
	ChangeStream = "change stream"
)

// none is the text of a setting that is not set.
const none = "none"

// coldText and streamText are the texts of the settings.
func coldText(age time.Duration) string { return settingText("cold after ", age) }

func streamText(keep time.Duration) string { return settingText("kept for ", keep) }

func settingText(what string, age time.Duration) string {
	switch {
	case age == 0:
		return none
	case age%time.Second != 0:
		return what + age.String()
	}
	return what + ageText(age)
}

// settingsOf returns the texts of a table's settings.
func settingsOf(t *adminpb.Table) map[string]string {
	s := map[string]string{TieredStorage: none, ChangeStream: none}
	if c := t.GetTieredStorageConfig(); c != nil {
		if age := c.GetInfrequentAccess().GetIncludeIfOlderThan(); age.CheckValid() == nil && age.AsDuration() > 0 {
			s[TieredStorage] = coldText(age.AsDuration())
		} else {
			s[TieredStorage] = "a rule that this version does not know: " + strings.Join(strings.Fields(prototext.MarshalOptions{}.Format(c)), " ")
		}
	}
	if c := t.GetChangeStreamConfig(); c != nil {
		s[ChangeStream] = streamText(c.GetRetentionPeriod().AsDuration())
	}
	return s
}

// tiers compares the tiered storage that the classes of all datasets ask for with the catalogue and the table.
func (c *comparison) tiers() {
	stored, next := maps.Clone(c.have.catalog.Datasets), map[string]catalog.Dataset{}
	recordedEntries := []catalog.Dataset{}
	for name, e := range stored {
		recordedEntries, next[name] = append(recordedEntries, e.Dataset), e.Dataset
	}
	newly := false // the plan allows cold data in a class for the first time
	for _, d := range c.declared {
		e := stored[d.Name]
		next[d.Name] = d.WithRetired(e.Dataset)
		for _, class := range d.AllClasses() {
			age := d.ColdAfter[class.Name]
			newly = newly || age != "" && age != e.ColdAfter[class.Name]
		}
	}
	recorded, err := dataset.TierOf(recordedEntries)
	want, err2 := dataset.TierOf(slices.Collect(maps.Values(next)))
	if errors.Join(err, err2) != nil {
		return // readCatalog reports entries that cannot be read
	}
	i := Item{Setting: TieredStorage, age: want.After, Declared: coldText(want.After), Actual: c.have.setting(TieredStorage), Holds: want.Cold}
	if len(recorded.Wanted) > 0 {
		i.Recorded = coldText(recorded.After)
	}
	against := ""
	if len(want.Against) > 0 {
		against = fmt.Sprintf("A table has one age for all its cells. These classes keep data at least as long as those with ColdAfter, and state none: %s.", strings.Join(want.Against, ", "))
	}
	changed, drifted := recorded.After != want.After, recorded.After > 0 && i.Recorded != i.Actual
	switch {
	case against != "" && newly:
		c.impossible(i, against)
		return
	case i.Actual == i.Declared && against == "":
		return
	case i.Actual == i.Declared:
		i.Kind = Unmet
	case len(want.Wanted) == 0 && len(recorded.Wanted) == 0:
		i.Kind, i.Declared = Foreign, ""
	case i.Actual == none:
		i.Kind = Create
		if recorded.After > 0 {
			i.Notes = []string{"The catalogue asks for it, but the table has none: it was removed elsewhere, or the table is older than the classes' ages."}
		}
	case changed && drifted:
		i.Kind = ChangeAndDrift
		i.Notes = []string{"The table's age was changed elsewhere, and the declared one is new."}
	case drifted:
		i.Kind = Drift
		i.Notes = []string{"The table's age was changed elsewhere."}
	default:
		i.Kind = Change
	}
	if against != "" {
		i.Notes = append(i.Notes, against)
	}
	switch {
	case !i.Kind.family():
	case want.After > 0:
		i.Notes = append(i.Notes, "Cells of this age and older move to the infrequent access tier, and so do the store's own rows, whose cells have the timestamp 0. Reads of them are slower.")
	default:
		i.Notes = append(i.Notes, "The table then has one tier, SSD, for all cells.")
	}
	c.items = append(c.items, i)
}

// changeStream compares the change stream with what the plan says about it; nil says nothing.
func (c *comparison) changeStream(keep *time.Duration) {
	if keep == nil {
		return
	}
	if i, ok := streamItem(*keep, c.have.setting(ChangeStream)); ok {
		c.items = append(c.items, i)
	}
}

// streamItem returns the item of a change stream that is to be kept for a time, or disabled for 0.
func streamItem(keep time.Duration, actual string) (Item, bool) {
	i := Item{Kind: Change, Setting: ChangeStream, age: keep, Declared: streamText(keep), Actual: actual}
	if i.Declared == actual {
		return i, false
	}
	text, kept := strings.CutPrefix(actual, "kept for ")
	was, err := catalog.ParseAge(text)
	switch {
	case actual == none:
		i.Kind = Create
		i.Notes = []string{"Changes are recorded from now on. Bigtable bills their storage."}
	case keep == 0:
		i.Destructive = true
		i.Notes = []string{"Changes that no reader has read are lost, and readers end. This cannot be undone."}
	case !kept || err != nil || keep < was:
		i.Destructive = true
		i.Notes = []string{"Older changes that no reader has read are lost. This cannot be undone."}
	}
	return i, true
}

// The limits of a change stream, by adminpb.ChangeStreamConfig in cloud.google.com/go/bigtable.
const minStream, maxStream = 24 * time.Hour, 7 * 24 * time.Hour

// WithChangeStream returns the plan with the table's change stream: enabled, with changes kept for a duration of 1 to 7 days in
// whole seconds, or disabled for 0. Bigtable's other limits and its costs are in
// https://docs.cloud.google.com/bigtable/docs/change-streams-overview. A plan that says nothing leaves the change stream alone.
//
// Disabling it, and keeping changes for a shorter time, loses changes that no reader has read: ApplyOptions.Allow must then name
// "change stream". The setting belongs to the table, so no schema declares it and the catalogue does not record it.
//
// WithChangeStream makes no requests and does not change p: it compares with what p has read. The error matches ErrInvalid for
// another duration, for the zero Plan, and for a plan of an earlier version that has not read the setting.
func (p *Plan) WithChangeStream(keep time.Duration) (*Plan, error) {
	actual, ok := p.document().Seen.Settings[ChangeStream]
	if !ok {
		return nil, invalid.New(ErrInvalid, "plan", "without the table's change stream", "a plan that this version made")
	}
	if keep != 0 && (keep < minStream || keep > maxStream || keep%time.Second != 0) {
		return nil, invalid.New(ErrInvalid, "change stream", keep.String(), "0 to disable it, or 24h to 168h in whole seconds")
	}
	next := &Plan{p.doc}
	seconds := int64(keep / time.Second)
	next.doc.ChangeStream = &seconds
	next.doc.Items = slices.DeleteFunc(cloneItems(p.doc.Items), func(i Item) bool { return i.Setting == ChangeStream })
	if i, ok := streamItem(keep, actual); ok {
		next.doc.Items = append(next.doc.Items, i)
		sortItems(next.doc.Items)
	}
	return next, nil
}

// stream returns what the plan says about the change stream; nil for nothing.
func (d *document) stream() *time.Duration {
	if d.ChangeStream == nil {
		return nil
	}
	keep := time.Duration(*d.ChangeStream) * time.Second
	return &keep
}

// setSettings changes the settings of the table. One call changes all of them, together or not at all.
func (a *applier) setSettings(ctx context.Context, items []Item) error {
	t := &adminpb.Table{Name: a.path}
	mask := &fieldmaskpb.FieldMask{}
	var asked []Item
	for _, i := range items {
		if i.Setting == "" || !i.Kind.family() {
			continue
		}
		asked = append(asked, i)
		switch i.Setting {
		case TieredStorage:
			mask.Paths = append(mask.Paths, "tiered_storage_config")
			if i.age > 0 {
				t.TieredStorageConfig = &adminpb.TieredStorageConfig{InfrequentAccess: &adminpb.TieredStorageRule{
					Rule: &adminpb.TieredStorageRule_IncludeIfOlderThan{IncludeIfOlderThan: durationpb.New(i.age)},
				}}
			}
		case ChangeStream:
			mask.Paths = append(mask.Paths, "change_stream_config")
			if i.age > 0 {
				t.ChangeStreamConfig = &adminpb.ChangeStreamConfig{RetentionPeriod: durationpb.New(i.age)}
			}
		}
	}
	if len(asked) == 0 {
		return nil
	}
	a.doubt = asked
	op, err := a.admin.TableAdminClientV2().UpdateTable(ctx, &adminpb.UpdateTableRequest{Table: t, UpdateMask: mask, IgnoreWarnings: a.opts.IgnoreWarnings})
	if err == nil {
		_, err = op.Wait(ctx)
	}
	if err != nil {
		return a.settingsError(err, asked)
	}
	a.doubt, a.done = nil, append(a.done, asked...)
	return nil
}

// settingsError adds to the service's refusal of tiered storage what it may mean.
func (a *applier) settingsError(err error, asked []Item) error {
	var what []string
	for _, i := range asked {
		what = append(what, i.Setting)
	}
	hint := ""
	switch status.Code(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.Unimplemented:
		if slices.Contains(what, TieredStorage) {
			hint = " (" + TieredStorage + ": " + catalog.NeedsTiers + ")"
		}
	}
	return fmt.Errorf("retention: change the %s of table %s%s: %w", strings.Join(what, " and the "), a.Name, hint, err)
}
