package catalog

import (
	"context"
	"crypto/rand"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// ChangeLog is a row that records which of the store's own rows with one prefix changed. A store polls a few bytes of
// it, and then reads only the changed rows.
type ChangeLog struct{ row, prefix string }

// MarkChanges is the log of erasure marks, and ProfileChanges that of profiles.
var (
	MarkChanges    = ChangeLog{rowkey.MarksRow, rowkey.MarkRows}
	ProfileChanges = ChangeLog{rowkey.ProfilesRow, rowkey.ProfileRows}
)

// The columns of a change log.
const (
	columnEpoch  = "gen" // random text, replaced at each change
	columnLog    = "log" // the latest changes, oldest first: lines of the epoch that the change began, and the name of a row
	columnNumber = "n"   // the number of changes, in decimal
	columnOpen   = "w."  // followed by random text: the name of a row that is about to change
)

// logLines is how many lines a log holds. A store that has missed more changes reads all rows.
const logLines = 128

// Changes is the result of reading a change log.
type Changes struct {
	Epoch  string
	Number uint64
	Names  []string // rows that may have changed since the known epoch, possibly with duplicates
	All    bool     // it is unknown which rows changed
}

// Read returns the changes since an epoch that Read returned before; known is empty if there is none. It costs one read
// of a few bytes, and after a change another one of up to some kilobytes.
func (l ChangeLog) Read(ctx context.Context, t *bt.Table, known string) (Changes, error) {
	short := bigtable.ChainFilters(latest(), bigtable.ColumnFilter(columnEpoch+"|"+columnNumber+"|"+regexp.QuoteMeta(columnOpen)+".*"))
	row, err := t.Row(ctx, l.row, short)
	if err != nil {
		return Changes{}, err
	}
	if epoch := string(value(row, columnEpoch)); known == "" || epoch == known {
		return Changes{Epoch: epoch, Number: numberOf(row), Names: openNames(row), All: known == ""}, nil
	}
	if row, err = t.Row(ctx, l.row, latest()); err != nil {
		return Changes{}, err
	}
	c := Changes{Epoch: string(value(row, columnEpoch)), Number: numberOf(row), Names: openNames(row), All: true}
	entries := logOf(row)
	i := len(entries) - 1
	for i >= 0 && entries[i].epoch != known {
		i--
	}
	if i < 0 {
		return c, nil
	}
	c.All = false
	for _, e := range entries[i+1:] {
		c.Names = append(c.Names, e.name)
	}
	return c, nil
}

// logEntry is one line of a log.
type logEntry struct{ epoch, name string }

// logOf returns the lines of a log. It returns none if a program that does not know logs has changed the epoch.
func logOf(row *bt.Row) (entries []logEntry) {
	for line := range strings.Lines(string(value(row, columnLog))) {
		epoch, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		entries = append(entries, logEntry{epoch, name})
	}
	if n := len(entries); n == 0 || entries[n-1].epoch != string(value(row, columnEpoch)) {
		return nil
	}
	return entries
}

// numberOf returns the number of changes; 0 if none is stored.
func numberOf(row *bt.Row) uint64 {
	n, _ := strconv.ParseUint(string(value(row, columnNumber)), 10, 64)
	return n
}

// openColumns returns the columns of changes that have begun, by the name of the changing row.
func openColumns(row *bt.Row) map[string][]string {
	var open map[string][]string
	for _, item := range row.Family(Family) {
		if column, ok := strings.CutPrefix(item.Column, Family+":"); ok && strings.HasPrefix(column, columnOpen) {
			if open == nil {
				open = map[string][]string{}
			}
			open[string(item.Value)] = append(open[string(item.Value)], column)
		}
	}
	return open
}

func openNames(row *bt.Row) (names []string) {
	for name := range openColumns(row) {
		names = append(names, name)
	}
	return names
}

// Next returns the number that the next change will have, as the cluster for conditional writes has it. It costs a
// read.
func (l ChangeLog) Next(ctx context.Context, t *bt.Table) (uint64, error) {
	row, err := t.RowAsJudged(ctx, l.row, bigtable.ChainFilters(latest(), bigtable.ColumnFilter(columnNumber)))
	return numberOf(row) + 1, err
}

// Append records that the rows of some names have changed. Call it after the changes; it may be repeated.
func (l ChangeLog) Append(ctx context.Context, t *bt.Table, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	return l.append(ctx, t, names, nil)
}

func (l ChangeLog) append(ctx context.Context, t *bt.Table, names, closed []string) error {
	return t.Retry(ctx, func(ctx context.Context) (bool, error) {
		row, err := t.RowAsJudged(ctx, l.row, latest())
		if err != nil {
			return false, err
		}
		was, epoch := string(value(row, columnEpoch)), rand.Text()
		entries := logOf(row)
		if entries == nil && was != "" {
			entries = []logEntry{{epoch: was}}
		}
		for _, name := range names {
			entries = append(entries, logEntry{epoch, name})
		}
		var text strings.Builder
		for _, e := range entries[max(0, len(entries)-logLines):] {
			text.WriteString(e.epoch + " " + e.name + "\n")
		}
		mut := bigtable.NewMutation()
		mut.Set(Family, columnEpoch, 0, []byte(epoch))
		mut.Set(Family, columnLog, 0, []byte(text.String()))
		mut.Set(Family, columnNumber, 0, []byte(strconv.FormatUint(numberOf(row)+1, 10)))
		for _, column := range closed {
			mut.DeleteCellsInColumn(Family, column)
		}
		if was == "" {
			exists, out := t.Conditional(ctx, l.row, bigtable.ColumnFilter(columnEpoch), nil, mut)
			return !exists, out.Err
		}
		same := bigtable.ChainFilters(bigtable.ColumnFilter(columnEpoch), bigtable.ValueFilter(regexp.QuoteMeta(was)))
		matched, out := t.Conditional(ctx, l.row, same, mut, nil)
		return matched, out.Err
	})
}

// Change is a change of a row that has begun. Stores read the row each time until the change ends.
type Change struct {
	log    ChangeLog
	name   string
	own    string   // its column
	before []string // the columns of earlier, open changes of the same row
}

// Begin records that a row is about to change, so that stores notice the change even if Append never follows.
func (l ChangeLog) Begin(ctx context.Context, t *bt.Table, name string) (Change, error) {
	row, err := t.RowAsJudged(ctx, l.row, latest())
	if err != nil {
		return Change{}, err
	}
	c := Change{log: l, name: name, own: columnOpen + rand.Text(), before: openColumns(row)[name]}
	mut := bigtable.NewMutation()
	mut.Set(Family, c.own, 0, []byte(name))
	return c, t.Apply(ctx, l.row, mut).Err
}

// End records that this change will not alter the row any more. last means that no earlier change of the row can still
// happen.
func (c Change) End(ctx context.Context, t *bt.Table, last bool) error {
	closed := []string{c.own}
	if last {
		closed = slices.Concat(closed, c.before)
	}
	return c.log.append(ctx, t, []string{c.name}, closed)
}
