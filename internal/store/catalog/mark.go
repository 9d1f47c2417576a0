package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// The columns of an erasure mark next to its document. Stores read only these.
const (
	columnMark     = "m" // "" for a mark without an end, or its end in seconds since 1970; missing if there is no mark
	columnEntities = "e" // in a mark of an entity: the hashes of the entity's path in each dataset

	// These columns remain after a mark was lifted:
	columnLifted         = "l" // the generation of the first writes that are allowed again, in decimal
	columnLiftedEntities = "k" // in a mark of an entity: the former columnEntities
)

// MostMarks bounds the marks in force at once, and MostOfTenant those of one tenant. Each store holds all of them, in
// about 200 bytes each.
const (
	MostMarks    = 1_000_000
	MostOfTenant = 250_000
)

// EntityHash identifies an entity in a mark, which does not store the entity's name.
type EntityHash [16]byte

// HashEntity returns the hash of the entity at a path of a dataset.
func HashEntity(dataset, path string) EntityHash {
	sum := sha256.Sum256([]byte(dataset + "#" + path))
	return EntityHash(sum[:16])
}

// Mark is an erasure mark.
type Mark struct {
	Tenant   string
	Name     string       // of a mark of an entity; empty for a tenant's mark
	Until    time.Time    // zero means no end
	Entities []EntityHash // nil for the whole tenant
	// Lifted is the generation of the first writes that are allowed since the mark was last lifted; 0 means never. It
	// stays when the mark is made again.
	Lifted uint64
	// Gone means that there is no mark, only Lifted.
	Gone bool
}

// DeletedDataset returns the name that replaces the tenant's in the mark of a deleted dataset.
func DeletedDataset(dataset string) string { return rowkey.DeletedMark + dataset }

// Over reports whether the mark has ended.
func (m *Mark) Over(now time.Time) bool { return !m.Until.IsZero() && !now.Before(m.Until) }

// SetMark adds the columns that stores read to the mutation of a mark's row.
func SetMark(mut *bigtable.Mutation, m Mark) {
	until := ""
	if !m.Until.IsZero() {
		until = strconv.FormatInt(m.Until.Add(time.Second-1).Unix(), 10)
	}
	mut.Set(Family, columnMark, 0, []byte(until))
	mut.Set(Family, columnEntities, 0, joined(m.Entities))
}

func joined(list []EntityHash) (all []byte) {
	for _, h := range list {
		all = append(all, h[:]...)
	}
	return all
}

// Row returns the name of the mark's row in the change log.
func (m *Mark) Row() string {
	if m.Name == "" {
		return m.Tenant
	}
	return m.Tenant + "#" + m.Name
}

// LiftMark adds the end of a mark to the mutation of the mark's row. The document stays. Writes of a generation before
// lifted are refused afterwards too. For a mark that has ended by itself, pass 0: such writes are then allowed.
func LiftMark(mut *bigtable.Mutation, lifted uint64, entities []EntityHash) {
	mut.DeleteCellsInColumn(Family, columnMark)
	mut.DeleteCellsInColumn(Family, columnEntities)
	if lifted == 0 {
		return
	}
	mut.Set(Family, columnLifted, 0, strconv.AppendUint(nil, lifted, 10))
	mut.Set(Family, columnLiftedEntities, 0, joined(entities))
}

// ForgetLift adds the removal of LiftMark's generation to the mutation of a mark's row.
func ForgetLift(mut *bigtable.Mutation) {
	mut.DeleteCellsInColumn(Family, columnLifted)
	mut.DeleteCellsInColumn(Family, columnLiftedEntities)
}

var errManyMarks = errors.New("tsdb: the table has more erasure marks than a store can hold")

// Marks returns the marks with some names, or all if names is nil, including those that are over and those that are
// gone. An error is the last pair.
func Marks(ctx context.Context, t *bt.Table, names []string) iter.Seq2[Mark, error] {
	rows := ownRows(ctx, t, rowkey.MarkRows, names, "["+columnMark+columnEntities+columnLifted+columnLiftedEntities+"]")
	// Writers of marks stop at MostMarks, but concurrent ones may exceed it.
	return eachOf(rows, 2*MostMarks, errManyMarks, func(row *bt.Row) (Mark, bool) { return parseMark(row), true })
}

// LoadMark reads a mark and its document, by the name of its row. If there is no such row, the document does not exist.
func LoadMark(ctx context.Context, t *bt.Table, name string) (Mark, Document, error) {
	row, err := t.RowAsJudged(ctx, rowkey.MarkRows+name, latest())
	if err != nil || row == nil {
		return Mark{}, Document{}, err
	}
	doc, err := ParseDocument(row)
	return parseMark(row), doc, err
}

// MarkRow returns the Mark with the Tenant and Name that the name of its row contains.
func MarkRow(row string) Mark {
	tenant, name, _ := strings.Cut(row, "#")
	return Mark{Tenant: tenant, Name: name}
}

// parseMark returns the mark in a row. If it cannot be read, parseMark returns a mark of the whole tenant without an
// end, so that other tenants are not affected.
func parseMark(row *bt.Row) Mark {
	m := MarkRow(strings.TrimPrefix(row.Key(), rowkey.MarkRows))
	whole, hashes := m, value(row, columnEntities)
	if m.Gone = !has(row, columnMark) && !has(row, columnEntities); m.Gone {
		hashes = value(row, columnLiftedEntities)
	}
	if text := string(value(row, columnLifted)); text != "" {
		var err error
		if m.Lifted, err = strconv.ParseUint(text, 10, 64); err != nil {
			return whole
		}
	}
	if text := string(value(row, columnMark)); text != "" {
		sec, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return whole
		}
		m.Until = time.Unix(sec, 0)
	}
	if len(hashes)%len(EntityHash{}) != 0 || (m.Name == "") != (len(hashes) == 0) {
		return whole
	}
	for len(hashes) > 0 {
		m.Entities = append(m.Entities, EntityHash(hashes))
		hashes = hashes[len(EntityHash{}):]
	}
	return m
}
