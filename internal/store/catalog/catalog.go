// Package catalog keeps the store's own rows: the version of the stored format, and what each dataset looks like, so that
// programs which disagree about it find out before they write, and tools can read datasets they were not compiled with.
package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// Family holds the store's own rows. No retention class can have its name.
const Family = "_sys"

// FormatVersion is the version of the stored format that this package reads and writes.
const FormatVersion = 1

// The columns of the store's own rows. Their cells all have the timestamp 0, so that a column never has two.
const (
	columnVersion    = "v"    // of the format row: the version in decimal
	columnDocument   = "json" // of a dataset's row: the Dataset
	columnGeneration = "gen"  // of a dataset's row: how often it was written, in decimal
	columnCreatedFor = "t"    // of a dataset's row: the tenant that it was created for; missing for none
)

// Dataset is what the catalogue knows of a dataset.
type Dataset struct {
	Name      string   `json:"name"`
	Key       []string `json:"key"`             // names of the key fields
	Kinds     []string `json:"kinds,omitempty"` // of the key fields; none where all are text
	Precision string   `json:"precision"`       // ns, us or ms
	Salts     int      `json:"salts"`
	FirstWins bool     `json:"first_wins"`
	Merge     bool     `json:"merge,omitempty"`
	Fixed     string   `json:"fixed,omitempty"` // with Merge: what the names of fields that cannot change start with
	Tags      []string `json:"tags"`            // of the codec, the one that is written first
	Classes   []Class  `json:"classes"`         // the one that is written first
	Head      *Head    `json:"head,omitempty"`
	Rollups   []Rollup `json:"rollups,omitempty"`
	// RollupAges are how long rollups of tenants in a class are kept at most, as policies by class; missing for their own age.
	RollupAges map[string]string `json:"rollup_ages,omitempty"`
	Retired    *Retired          `json:"retired,omitempty"` // nil in what a program declares
}

// Head is what the catalogue knows of a dataset's head rows.
type Head struct {
	Points int  `json:"points"`
	Only   bool `json:"only"` // there are no rows of points beside
}

// String returns how messages name the head rows, none for nil.
func (h *Head) String() string {
	switch {
	case h == nil:
		return "none"
	case h.Only:
		return fmt.Sprintf("the only rows, of %d points", h.Points)
	}
	return fmt.Sprintf("of %d points", h.Points)
}

// Class is a retention class in the catalogue: a column family and its policy in the syntax of package gc.
type Class struct {
	Name   string `json:"name"`
	Policy string `json:"policy"`
	Choice bool   `json:"choice,omitempty"` // the profile of a tenant can name it for points to be written in
}

// Offers returns the classes in which the points of a tenant can be written, the one for all others first.
func (d *Dataset) Offers() []string {
	var out []string
	for i, c := range d.Classes {
		if i == 0 || c.Choice && !d.Retired.has(Part{Class: c.Name}) {
			out = append(out, c.Name)
		}
	}
	return out
}

// Entry is a dataset as it is stored.
type Entry struct {
	Dataset
	generation uint64
	first      uint64 // the generation of an entry that is not stored yet; 0 for 1
	document   []byte
	complete   complete
}

// State is what Load found.
type State struct {
	Format   int // 0 where the table holds no store yet
	Datasets map[string]Entry
	Deleted  []string // of the datasets that Load was asked for, those that are deleted or being deleted
	Removing []string // of the classes that Load was asked for, those whose families are being removed

	released map[string]bool // the datasets that were deleted once, and may be made again
}

// Load reads the format's version, the entries and the marks of deletion of the named datasets, and whether the families of classes
// are being removed, in one request.
func Load(ctx context.Context, t *bt.Table, names []string, classes ...string) (State, error) {
	keys := bigtable.RowList{rowkey.FormatRow}
	for _, name := range names {
		keys = append(keys, rowkey.DatasetRows+name, rowkey.MarkRows+DeletedDataset(name))
	}
	for _, class := range classes {
		keys = append(keys, rowkey.RemovalRows+ClassRemoval(class))
	}
	st := State{Datasets: make(map[string]Entry, len(names))}
	for row, err := range t.Rows(ctx, bt.Scan{Rows: keys, Filter: bigtable.LatestNFilter(1)}) {
		if err != nil {
			return st, err
		}
		if !slices.Contains(keys, row.Key()) {
			return st, bt.ErrForeignRow
		}
		if row.Key() == rowkey.FormatRow {
			if st.Format, err = parseFormat(row); err != nil {
				return st, err
			}
			continue
		}
		if name, ok := strings.CutPrefix(row.Key(), rowkey.MarkRows+rowkey.DeletedMark); ok {
			if m := parseMark(row); !m.Gone {
				st.Deleted = append(st.Deleted, name)
			} else {
				st.setReleased(name)
			}
			continue
		}
		if class, ok := strings.CutPrefix(row.Key(), rowkey.RemovalRows+ClassRemoval("")); ok {
			if isRemoving(row) {
				st.Removing = append(st.Removing, class)
			}
			continue
		}
		e, err := namedEntry(row)
		if err != nil {
			return st, err
		}
		st.Datasets[e.Name] = e
	}
	return st, nil
}

func (st *State) setReleased(dataset string) {
	if st.released == nil {
		st.released = map[string]bool{}
	}
	st.released[dataset] = true
}

// ClassRemoval returns the name of the removal of the families of a class, behind rowkey.RemovalRows.
func ClassRemoval(class string) string { return "#class." + class }

// isRemoving reports whether a removal's row is of one that has neither ended nor been given up. One that cannot be read is.
func isRemoving(row bigtable.Row) bool {
	var doc struct {
		State string `json:"state"`
	}
	return json.Unmarshal(value(row, columnDocument), &doc) != nil || doc.State != "erased" && doc.State != "readmitted"
}

func value(row bigtable.Row, column string) []byte {
	for _, item := range row[Family] {
		if item.Column == Family+":"+column {
			return item.Value
		}
	}
	return nil
}

// has reports whether a row has a column, which may be empty.
func has(row bigtable.Row, column string) bool {
	return slices.ContainsFunc(row[Family], func(item bigtable.ReadItem) bool { return item.Column == Family+":"+column })
}

func parseFormat(row bigtable.Row) (int, error) {
	text := value(row, columnVersion)
	v, err := strconv.Atoi(string(text))
	if err != nil || v < 1 {
		return 0, fmt.Errorf("the catalogue's row %s holds the version %q, which is no number above 0", row.Key(), text)
	}
	return v, nil
}

func parseEntry(row bigtable.Row) (Entry, error) {
	doc := value(row, columnDocument)
	var e Entry
	if err := json.Unmarshal(doc, &e.Dataset); err != nil {
		return e, fmt.Errorf("the catalogue's row %s does not decode: %w", row.Key(), err)
	}
	gen, err := strconv.ParseUint(string(value(row, columnGeneration)), 10, 64)
	if err != nil {
		return e, fmt.Errorf("the catalogue's row %s has no generation: %w", row.Key(), err)
	}
	e.generation, e.document = gen, doc
	return e, e.parseComplete()
}

// WriteFormat writes the format's version where the table has none. It reports false where there is one.
func WriteFormat(ctx context.Context, t *bt.Table) (bool, error) {
	mut := bigtable.NewMutation()
	mut.Set(Family, columnVersion, 0, []byte(strconv.Itoa(FormatVersion)))
	exists, out := t.Conditional(ctx, rowkey.FormatRow, bigtable.ColumnFilter(columnVersion), nil, mut)
	return !exists && out.Err == nil, out.Err
}

// Write stores d where the catalogue still holds what old says: nothing for the zero Entry. It reports false, and changes
// nothing, where another process was faster.
func Write(ctx context.Context, t *bt.Table, d Dataset, old Entry) (bool, error) {
	d = d.withRetired(old.Dataset)
	doc, err := d.document(old.document)
	if err != nil {
		return false, err
	}
	return write(ctx, t, old, d.Name, doc, tenant.ID{})
}

// Create is Write of a dataset that the catalogue does not have by st. It records the tenant that the dataset is created for; the
// zero ID is none. The generations of a dataset that was deleted once do not begin at 1: whoever has read the entry of before must
// not take the new one for it.
func Create(ctx context.Context, t *bt.Table, d Dataset, by tenant.ID, st State) (bool, error) {
	doc, err := d.document(nil)
	if err != nil {
		return false, err
	}
	e := Entry{first: 1}
	if st.released[d.Name] {
		e.first = randomGeneration()
	}
	return write(ctx, t, e, d.Name, doc, by)
}

// randomGeneration returns the first generation of a row in whose place there may have been another one. Generations are compared for
// equality alone, and only ever grow by 1, so two lives of a row do not meet.
func randomGeneration() uint64 { return 1<<32 + rand.Uint64()>>2 }

// CountCreatedFor returns how many datasets of the catalogue were created for a tenant, and at most most. It is one request.
func CountCreatedFor(ctx context.Context, t *bt.Table, id tenant.ID, most int64) (n int64, err error) {
	rng := rowkey.OwnAfter(rowkey.DatasetRows, "")
	filter := bigtable.ChainFilters(bigtable.FamilyFilter(Family), bigtable.ColumnFilter(columnCreatedFor), bigtable.LatestNFilter(1),
		bigtable.ValueFilter(regexp.QuoteMeta(id.String())))
	for row, err := range t.Rows(ctx, bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: filter, Limit: most, Long: true}) {
		if err == nil && (row.Key() < rng.Start || row.Key() >= rng.Limit) {
			err = bt.ErrForeignRow
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Same reports whether the two say the same, order included, but for what is retired of o and d does not have.
func (d Dataset) Same(o Dataset) bool {
	o = o.withoutRetired(d)
	return len(d.Differences(o)) == 0 && slices.Equal(d.Tags, o.Tags) && slices.Equal(d.Classes, o.Classes) &&
		slices.Equal(rollupNames(d.Rollups), rollupNames(o.Rollups))
}

// Differences lists where a program that declares d cannot work with what is stored as o: the shape of keys, and tags,
// classes and rollups that one of them has and the other has not. Their order is not a difference, nor is what is retired of o.
func (d Dataset) Differences(o Dataset) []string {
	diffs := d.Conflicts(o)
	diffs = append(diffs, missing(d.Name, "codec tag", "declared", d.Tags, "stored", o.Tags)...)
	diffs = append(diffs, missing(d.Name, "retention class", "declared", names(d.Classes), "stored", names(o.Classes))...)
	return append(diffs, missing(d.Name, "rollup", "declared", rollupNames(d.Rollups), "stored", rollupNames(o.Rollups))...)
}

// Conflicts is Differences without what writing d to the catalogue mends: tags, classes and rollups that only d has, and that
// were not removed from o.
func (d Dataset) Conflicts(o Dataset) []string {
	diffs := d.removed(o)
	o = o.withoutRetired(d)
	diffs = append(diffs, d.shape(o)...)
	diffs = append(diffs, missing(d.Name, "codec tag", "stored", o.Tags, "declared", d.Tags)...)
	diffs = append(diffs, missing(d.Name, "retention class", "stored", names(o.Classes), "declared", names(d.Classes))...)
	return append(diffs, missing(d.Name, "rollup", "stored", rollupNames(o.Rollups), "declared", rollupNames(d.Rollups))...)
}

func (d Dataset) shape(o Dataset) (diffs []string) {
	differ := func(what, declared, stored string) {
		if declared != stored {
			diffs = append(diffs, fmt.Sprintf("dataset %s: %s declared as %s, stored as %s", d.Name, what, declared, stored))
		}
	}
	differ("key fields", strings.Join(d.Key, ", "), strings.Join(o.Key, ", "))
	differ("kinds of key fields", d.kinds(), o.kinds())
	differ("precision", d.Precision, o.Precision)
	differ("salts", strconv.Itoa(d.Salts), strconv.Itoa(o.Salts))
	differ("head rows", d.Head.String(), o.Head.String())
	differ("first-wins", strconv.FormatBool(d.FirstWins), strconv.FormatBool(o.FirstWins))
	differ("merging", strconv.FormatBool(d.Merge), strconv.FormatBool(o.Merge))
	differ("names of Immutable fields", strconv.Quote(d.Fixed), strconv.Quote(o.Fixed))
	for _, c := range d.Classes {
		for _, s := range o.Classes {
			if c.Name == s.Name {
				differ("policy of retention class "+c.Name, c.Policy, s.Policy)
			}
		}
	}
	for _, age := range d.rollupAges(&o) {
		differ("age of rollups of tenants in retention class "+age[0], age[1], age[2])
	}
	return append(diffs, d.rollups(&o)...)
}

// kinds returns the kinds of the key fields as messages show them.
func (d *Dataset) kinds() string {
	if len(d.Kinds) == 0 {
		return "text"
	}
	return strings.Join(d.Kinds, ", ")
}

// FieldKinds returns the kinds of the key fields, one each. It checks them, as they come from a table or a file.
func (d *Dataset) FieldKinds() ([]rowkey.FieldKind, error) {
	if len(d.Kinds) == 0 {
		return make([]rowkey.FieldKind, len(d.Key)), nil
	}
	kinds := make([]rowkey.FieldKind, len(d.Kinds))
	for i, name := range d.Kinds {
		var err error
		if kinds[i], err = rowkey.ParseFieldKind(name); err != nil {
			return nil, err
		}
	}
	return kinds, rowkey.CheckKinds(d.Key, kinds)
}

func missing(dataset, what, haveWord string, have []string, lackWord string, lack []string) (diffs []string) {
	for _, h := range have {
		if !slices.Contains(lack, h) {
			diffs = append(diffs, fmt.Sprintf("dataset %s: %s %s is %s but not %s", dataset, what, h, haveWord, lackWord))
		}
	}
	return diffs
}

func names(classes []Class) []string {
	out := make([]string, len(classes))
	for i, c := range classes {
		out[i] = c.Name
	}
	return out
}
