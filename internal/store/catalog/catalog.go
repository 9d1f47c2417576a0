// Package catalog reads and writes the store's own rows: the version of the stored format, and the shape of each
// dataset. So programs that disagree about a dataset find out before they write, and tools can read datasets that they
// were not compiled with.
package catalog

import (
	"cmp"
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
	"github.com/tidemark-go/tidemark/internal/fields"
	"github.com/tidemark-go/tidemark/internal/readrows"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// Family is the column family of the store's own rows. No retention class can have its name.
const Family = "_sys"

// FormatVersion is the version of the stored format that this package reads and writes.
const FormatVersion = 1

// The columns of the store's own rows. All their cells have the timestamp 0, so that a column never has two.
const (
	columnVersion    = "v"    // in the format row: the version in decimal
	columnDocument   = "json" // in a dataset's row: the Dataset
	columnGeneration = "gen"  // in a dataset's row: the number of writes, in decimal
	columnCreatedFor = "t"    // in a dataset's row: the tenant that it was created for; missing if none
)

// Dataset is a dataset's description in the catalogue.
type Dataset struct {
	Name      string   `json:"name"`
	Key       []string `json:"key"`             // names of the key fields
	Kinds     []string `json:"kinds,omitempty"` // of the key fields; empty if all are text
	Precision string   `json:"precision"`       // ns, us or ms
	Salts     int      `json:"salts"`
	FirstWins bool     `json:"first_wins"`
	Merge     bool     `json:"merge,omitempty"`
	Fixed     string   `json:"fixed,omitempty"` // with Merge: the prefix of the names of immutable fields
	Tags      []string `json:"tags"`            // of the codec; the first one is used for writing
	Classes   []Class  `json:"classes"`         // the first one is used for writing
	Head      *Head    `json:"head,omitempty"`
	Rollups   []Rollup `json:"rollups,omitempty"`
	// RollupAges holds, by class, how long rollups of tenants in the class are kept at most, as policies. For a missing
	// class the rollups' own ages apply.
	RollupAges map[string]string `json:"rollup_ages,omitempty"`
	Retired    *Retired          `json:"retired,omitempty"` // nil in a program's declaration
}

// Head describes a dataset's head rows.
type Head struct {
	Points int  `json:"points"`
	Only   bool `json:"only"` // the dataset has no rows of points besides
	// Fields says that heads have fields. Without merging, Shape has those of payloads, and Former the paths of fields
	// that payloads of other programs have or had.
	Fields     bool          `json:"fields,omitempty"`
	NullClears bool          `json:"null_clears,omitempty"`
	Shape      *fields.Shape `json:"shape,omitempty"`
	Former     []string      `json:"former,omitempty"`
}

// String returns the text for messages; "none" for nil.
func (h *Head) String() string {
	switch {
	case h == nil:
		return "none"
	case h.Only:
		return fmt.Sprintf("the only rows, of %d points", h.Points)
	case h.Fields && h.NullClears:
		return fmt.Sprintf("of %d points and of fields, which null clears", h.Points)
	case h.Fields:
		return fmt.Sprintf("of %d points and of fields", h.Points)
	}
	return fmt.Sprintf("of %d points", h.Points)
}

// Class is a retention class in the catalogue: a column family and its policy in the syntax of package gc.
type Class struct {
	Name   string `json:"name"`
	Policy string `json:"policy"`
	Choice bool   `json:"choice,omitempty"` // the profile of a tenant may choose it for its points
}

// Offers returns the classes in which the points of a tenant can be written, the default first.
func (d *Dataset) Offers() []string {
	var out []string
	for i, c := range d.Classes {
		if i == 0 || c.Choice && !d.Retired.has(Part{Class: c.Name}) {
			out = append(out, c.Name)
		}
	}
	return out
}

// Entry is a dataset as stored in the catalogue.
type Entry struct {
	Dataset
	generation uint64
	first      uint64 // the generation of an entry that is not stored yet; 0 means 1
	document   []byte
	complete   complete
}

// State is the result of Load.
type State struct {
	Format   int // 0 if the table holds no store yet
	Datasets map[string]Entry
	Deleted  []string // which of the datasets passed to Load are deleted or being deleted
	Removing []string // which of the classes passed to Load are being removed, with their families

	released map[string]bool // the datasets that were deleted before, and may be created again
}

// Load reads in one request: the format's version, the entries and deletion marks of the named datasets, and whether
// the families of classes are being removed.
func Load(ctx context.Context, t *bt.Table, names []string, classes ...string) (State, error) {
	keys := bigtable.RowList{rowkey.FormatRow}
	for _, name := range names {
		keys = append(keys, rowkey.DatasetRows+name, rowkey.MarkRows+DeletedDataset(name))
	}
	for _, class := range classes {
		keys = append(keys, rowkey.RemovalRows+ClassRemoval(class))
	}
	st := State{Datasets: make(map[string]Entry, len(names)), released: map[string]bool{}}
	rows := t.Rows(ctx, bt.Scan{Rows: keys, Filter: bigtable.LatestNFilter(1)})
	for row, err := range only(rows, func(key string) bool { return slices.Contains(keys, key) }) {
		if err != nil {
			return st, err
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
				st.released[name] = true
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

// ClassRemoval returns the name of the removal of a class's families, without the prefix rowkey.RemovalRows.
func ClassRemoval(class string) string { return "#class." + class }

// isRemoving reports whether a removal's row describes a removal that has neither ended nor been given up. If the row
// cannot be read, it returns true.
func isRemoving(row *bt.Row) bool {
	var doc struct {
		State string `json:"state"`
	}
	return json.Unmarshal(value(row, columnDocument), &doc) != nil || doc.State != "erased" && doc.State != "readmitted"
}

func value(row *bt.Row, column string) []byte {
	for _, item := range row.Family(Family) {
		if item.Column == Family+":"+column {
			return item.Value
		}
	}
	return nil
}

// has reports whether a row has a column, which may be empty.
func has(row *bt.Row, column string) bool {
	return slices.ContainsFunc(row.Family(Family), func(item readrows.Cell) bool { return item.Column == Family+":"+column })
}

func parseFormat(row *bt.Row) (int, error) {
	text := value(row, columnVersion)
	v, err := strconv.Atoi(string(text))
	if err != nil || v < 1 {
		return 0, fmt.Errorf("the catalogue's row %s holds the version %q, which is no number above 0", row.Key(), text)
	}
	return v, nil
}

func parseEntry(row *bt.Row) (Entry, error) {
	doc := value(row, columnDocument)
	var e Entry
	if err := cmp.Or(json.Unmarshal(doc, &e.Dataset), json.Unmarshal(doc, &e.complete)); err != nil {
		return e, fmt.Errorf("the catalogue's row %s does not decode: %w", row.Key(), err)
	}
	gen, err := strconv.ParseUint(string(value(row, columnGeneration)), 10, 64)
	if err != nil {
		return e, fmt.Errorf("the catalogue's row %s has no generation: %w", row.Key(), err)
	}
	e.generation, e.document = gen, doc
	return e, nil
}

// WriteFormat writes the format's version if the table has none. It returns false if there is one.
func WriteFormat(ctx context.Context, t *bt.Table) (bool, error) {
	mut := bigtable.NewMutation()
	mut.Set(Family, columnVersion, 0, []byte(strconv.Itoa(FormatVersion)))
	exists, out := t.Conditional(ctx, rowkey.FormatRow, bigtable.ColumnFilter(columnVersion), nil, mut)
	return !exists && out.Err == nil, out.Err
}

// Write stores d if the catalogue still holds old, or nothing for the zero Entry. It returns false, and changes
// nothing, if another process changed the entry first.
func Write(ctx context.Context, t *bt.Table, d Dataset, old Entry) (bool, error) {
	return Rewrite(ctx, t, d.WithRetired(old.Dataset).withFields(old.Dataset), old)
}

// Create writes a dataset that the catalogue does not have according to st. It records the tenant that the dataset is
// created for; the zero ID means none. If a dataset of that name was deleted before, generations do not begin at 1: a
// reader of the old entry must not mistake the new one for it.
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

// randomGeneration returns the first generation of a row whose key another row may have had before. Generations are
// only compared for equality, and only grow by 1, so those of the two rows never meet.
func randomGeneration() uint64 { return 1<<32 + rand.Uint64()>>2 }

// CountCreatedFor returns how many datasets were created for a tenant, counting to most at most. It makes one request.
func CountCreatedFor(ctx context.Context, t *bt.Table, id tenant.ID, most int64) (n int64, err error) {
	filter := bigtable.ChainFilters(bigtable.FamilyFilter(Family), bigtable.ColumnFilter(columnCreatedFor), bigtable.LatestNFilter(1),
		bigtable.ValueFilter(regexp.QuoteMeta(id.String())))
	for _, err := range inRange(ctx, t, rowkey.OwnAfter(rowkey.DatasetRows, ""), bt.Scan{Filter: filter, Limit: most, Long: true}) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Same reports whether the two are equal, including the order of lists. It ignores what is retired in o and missing in
// d.
func (d Dataset) Same(o Dataset) bool {
	o = o.withoutRetired(d)
	return len(d.Differences(o)) == 0 && slices.Equal(d.parts(), o.parts()) && slices.Equal(d.Classes, o.Classes)
}

// Differences lists why a program that declares d cannot work with the stored o: different keys, and tags, classes and
// rollups that only one of them has. It ignores their order, and what is retired in o.
func (d Dataset) Differences(o Dataset) []string {
	diffs := d.Conflicts(o)
	diffs = append(diffs, d.only(o, "declared but not stored")...)
	return slices.Concat(diffs, d.additions(&o), d.missingFields(&o))
}

// Conflicts is Differences without the differences that writing d to the catalogue resolves: tags, classes, rollups and
// added measures of rollups that only d has, and that were not removed from o.
func (d Dataset) Conflicts(o Dataset) []string {
	diffs := d.removed(o)
	o = o.withoutRetired(d)
	diffs = append(diffs, d.shape(o)...)
	return append(diffs, o.only(d, "stored but not declared")...)
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

// kinds returns the kinds of the key fields as text for messages.
func (d *Dataset) kinds() string {
	if len(d.Kinds) == 0 {
		return "text"
	}
	return strings.Join(d.Kinds, ", ")
}

// FieldKinds returns the kinds of the key fields, one each. It validates them, because they come from a table or a
// file.
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

// Space returns a tenant's space of the dataset, the kinds of its key fields, and its precision. It checks what they
// need.
func (d *Dataset) Space(id tenant.ID) (space rowkey.Space, kinds []rowkey.FieldKind, precision rowkey.Precision, err error) {
	kinds, err = d.FieldKinds()
	precision, identity, unknown := rowkey.ParseTimeName(d.Precision)
	if err := cmp.Or(rowkey.CheckDataset(d.Name), rowkey.CheckFields(d.Key, d.Salts), err, unknown); err != nil {
		return space, nil, precision, err
	}
	space, err = rowkey.NewSpace(id, d.Name, d.Key, d.Salts)
	return space.WithIdentity(identity), kinds, precision, err
}
