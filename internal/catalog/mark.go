package catalog

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/rowkey"
)

// The columns of an erasure mark beside its document. Stores read these alone.
const (
	columnMark     = "m"   // "" for a mark without an end, or the second since 1970 at which it ends; missing for no mark
	columnEntities = "e"   // of a mark of an entity: the hashes of what it is called in each dataset
	columnEpoch    = "gen" // of the row that says whether marks have changed
)

// MostMarks is how many marks may be in force at once: each store holds all of them.
const MostMarks = 100_000

// EntityHash is what stands for an entity in a mark: its name is not kept.
type EntityHash [16]byte

// HashEntity returns the hash of the entity at a path of a dataset.
func HashEntity(dataset, path string) EntityHash {
	sum := sha256.Sum256([]byte(dataset + "#" + path))
	return EntityHash(sum[:16])
}

// Mark is an erasure mark.
type Mark struct {
	Tenant   string
	Name     string       // of a mark of an entity, empty for that of a tenant
	Until    time.Time    // zero for no end
	Entities []EntityHash // nil for the whole tenant
}

// Over reports whether the mark has ended.
func (m *Mark) Over(now time.Time) bool { return !m.Until.IsZero() && !now.Before(m.Until) }

// SetMark adds to the mutation of a mark's row what stores go by.
func SetMark(mut *bigtable.Mutation, m Mark) {
	until := ""
	if !m.Until.IsZero() {
		until = strconv.FormatInt(m.Until.Add(time.Second-1).Unix(), 10)
	}
	mut.Set(Family, columnMark, 0, []byte(until))
	var hashes []byte
	for _, h := range m.Entities {
		hashes = append(hashes, h[:]...)
	}
	mut.Set(Family, columnEntities, 0, hashes)
}

// LiftMark adds to the mutation of a mark's row what ends it. The document stays.
func LiftMark(mut *bigtable.Mutation) {
	mut.DeleteCellsInColumn(Family, columnMark)
	mut.DeleteCellsInColumn(Family, columnEntities)
}

// MarksEpoch returns a text that is another one whenever a mark was changed since.
func MarksEpoch(ctx context.Context, t *bt.Table) (string, error) {
	row, err := t.Row(ctx, rowkey.MarksRow, latest())
	if err != nil {
		return "", err
	}
	return string(value(row, columnEpoch)), nil
}

// MarksChanged makes the epoch another one. It is called after a mark is changed, and may be repeated.
func MarksChanged(ctx context.Context, t *bt.Table) error {
	mut := bigtable.NewMutation()
	mut.Set(Family, columnEpoch, 0, []byte(rand.Text()))
	return t.Apply(ctx, rowkey.MarksRow, mut).Err
}

var errManyMarks = errors.New("tsdb: the table has more erasure marks than a store can hold")

// Marks returns all marks that are not lifted, those that are over included. An error is the last pair.
func Marks(ctx context.Context, t *bt.Table) iter.Seq2[Mark, error] {
	return func(yield func(Mark, error) bool) {
		rng := rowkey.OwnAfter(rowkey.MarkRows, "")
		filter := bigtable.ChainFilters(bigtable.FamilyFilter(Family), bigtable.ColumnFilter("["+columnMark+columnEntities+"]"), bigtable.LatestNFilter(1))
		read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: filter, Long: true}
		n := 0
		for row, err := range t.Rows(ctx, read) {
			var m Mark
			switch {
			case err != nil:
			case row.Key() < rng.Start || row.Key() >= rng.Limit:
				err = bt.ErrForeignRow
			case n == 2*MostMarks: // those who mark keep to the half of it, but not all at once
				err = errManyMarks
			default:
				m = parseMark(row)
			}
			n++
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// parseMark returns the mark in a row. One that cannot be read is taken for one of the whole tenant without an end, so that
// it holds up nobody else.
func parseMark(row bigtable.Row) Mark {
	name, entity, _ := strings.Cut(strings.TrimPrefix(row.Key(), rowkey.MarkRows), "#")
	m := Mark{Tenant: name, Name: entity}
	if text := string(value(row, columnMark)); text != "" {
		sec, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Mark{Tenant: name}
		}
		m.Until = time.Unix(sec, 0)
	}
	hashes := value(row, columnEntities)
	if len(hashes)%len(EntityHash{}) != 0 || (entity == "") != (len(hashes) == 0) {
		return Mark{Tenant: name}
	}
	for len(hashes) > 0 {
		m.Entities = append(m.Entities, EntityHash(hashes))
		hashes = hashes[len(EntityHash{}):]
	}
	return m
}
