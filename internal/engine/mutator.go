package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemark-go/tidemark/internal/reach"
)

// rangeDeleteCells is how many cells a delete removes one by one. Each leaves a tombstone that later scans step over
// until it is compacted. Beyond this number, one tombstone for the whole range is cheaper, although each of those costs
// all readers a bit.
const rangeDeleteCells = 512

// mutator turns checked mutations into a batch. The caller holds the rows' locks: shared for a blind batch, and
// exclusive, with an indexed batch, for one that reads.
type mutator struct {
	schema *schema
	table  uint32
	now    int64 // server time, in the table's granularity
	batch  *pebble.Batch

	deleted int // number of cells, approximate: a range counts as rangeDeleteCells

	row []byte // prefix of the current row
	key []byte // scratch
	end []byte // scratch
}

func (e *Engine) mutator(t *table, s *schema, b *pebble.Batch) mutator {
	return mutator{schema: s, table: t.id, now: s.truncate(e.micros()), batch: b}
}

// setRow adds the cells that a blind entry sets.
func (w *mutator) setRow(rowKey []byte, muts []*bigtablepb.Mutation) error {
	w.row = appendRow(w.row[:0], w.table, rowKey)
	var f *family
	for _, m := range muts {
		c := m.GetSetCell()
		if f == nil || f.name != c.FamilyName {
			f = w.schema.families[c.FamilyName]
		}
		if err := w.set(f, c.ColumnQualifier, w.timestamp(m, c), c.Value); err != nil {
			return err
		}
	}
	return nil
}

func (w *mutator) timestamp(m *bigtablepb.Mutation, c *bigtablepb.Mutation_SetCell) int64 {
	switch {
	case c.GetTimestampMicros() == serverTime:
		return w.now
	case w.schema.autoTimestamp(m):
		return w.schema.truncate(c.GetTimestampMicros())
	}
	return c.GetTimestampMicros()
}

// set adds one cell, encoded in place.
func (w *mutator) set(f *family, qualifier []byte, ts int64, value []byte) error {
	keyLen := len(w.row) + familyLen + escapedLen(qualifier) + 2 + timestampLen
	op := w.batch.SetDeferred(keyLen, len(value))
	appendTimestamp(appendColumn(append(op.Key[:0], w.row...), f.id, qualifier), ts) // fills the key
	copy(op.Value, value)
	return op.Finish()
}

// mutateRow adds the changes of an entry. The batch is indexed: the entry's reads include what the batch holds already.
func (w *mutator) mutateRow(rowKey []byte, muts []*bigtablepb.Mutation) error {
	w.row = appendRow(w.row[:0], w.table, rowKey)
	for _, m := range muts {
		if err := w.mutate(m); err != nil {
			return err
		}
	}
	return nil
}

// mutateRowOnce is mutateRow, but changes nothing if the entry's token says that it was applied before.
func (w *mutator) mutateRowOnce(e *Engine, t token, rowKey []byte, muts []*bigtablepb.Mutation) error {
	if before, err := e.replay(w.batch, t); before || err != nil {
		if before {
			reach.Point(reach.KnownToken)
		}
		return err
	}
	return w.mutateRow(rowKey, muts)
}

func (w *mutator) mutate(m *bigtablepb.Mutation) error {
	switch m2 := m.GetMutation().(type) {
	case *bigtablepb.Mutation_SetCell_:
		c := m2.SetCell
		return w.set(w.schema.families[c.GetFamilyName()], c.GetColumnQualifier(), w.timestamp(m, c), c.GetValue())
	case *bigtablepb.Mutation_AddToCell_:
		a, err := w.schema.addition(m2.AddToCell)
		if err != nil {
			return err
		}
		return w.accumulate(a)
	case *bigtablepb.Mutation_MergeToCell_:
		a, err := w.schema.merge(m2.MergeToCell)
		if err != nil {
			return err
		}
		return w.accumulate(a)
	case *bigtablepb.Mutation_DeleteFromColumn_:
		d := m2.DeleteFromColumn
		w.key = appendColumn(append(w.key[:0], w.row...), w.schema.families[d.GetFamilyName()].id, d.GetColumnQualifier())
		w.end = append(w.end[:0], w.key...)
		r := d.GetTimeRange()
		if end := r.GetEndTimestampMicros(); end > 0 {
			w.key = appendTimestamp(w.key, end-1)
		}
		if start := r.GetStartTimestampMicros(); start > 0 {
			w.end = appendTimestamp(w.end, start-1)
		} else {
			w.end = afterTerminator(w.end)
		}
		return w.deleteRange()
	case *bigtablepb.Mutation_DeleteFromFamily_:
		id := w.schema.families[m2.DeleteFromFamily.GetFamilyName()].id
		w.key = appendFamily(append(w.key[:0], w.row...), id)
		w.end = appendFamily(append(w.end[:0], w.row...), id+1)
		return w.deleteRange()
	case *bigtablepb.Mutation_DeleteFromRow_:
		w.key = append(w.key[:0], w.row...)
		w.end = afterTerminator(append(w.end[:0], w.row...))
		return w.deleteRange()
	}
	return fmt.Errorf("engine: mutation %T was not checked", m.GetMutation())
}

// accumulate folds an input into an aggregate cell.
func (w *mutator) accumulate(a accumulation) error {
	if a.null {
		return nil
	}
	w.key = appendColumn(append(w.key[:0], w.row...), a.family.id, a.qualifier)
	w.key = appendTimestamp(w.key, a.timestamp)
	state := a.input
	value, closer, err := w.batch.Get(w.key)
	switch {
	case err == nil:
		old, ok := decodeInt64(value)
		if err := closer.Close(); err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%w: aggregate cell of %d bytes", ErrDamaged, len(value))
		}
		state = a.family.aggregate.fold(old, a.input)
	case !errors.Is(err, pebble.ErrNotFound):
		return err
	}
	op := w.batch.SetDeferred(len(w.key), aggregateLen)
	copy(op.Key, w.key)
	binary.BigEndian.PutUint64(op.Value, uint64(state))
	return op.Finish()
}

// deleteRange deletes the cells from key up to end.
func (w *mutator) deleteRange() error {
	it, err := w.batch.NewIter(&pebble.IterOptions{LowerBound: w.key, UpperBound: w.end})
	if err != nil {
		return err
	}
	defer it.Close()
	var keys []byte // length-prefixed; collected first, because the batch must not change during iteration
	n := 0
	for it.First(); it.Valid(); it.Next() {
		if n++; n > rangeDeleteCells {
			w.deleted += rangeDeleteCells
			return w.batch.DeleteRange(w.key, w.end, nil)
		}
		keys = binary.AppendUvarint(keys, uint64(len(it.Key())))
		keys = append(keys, it.Key()...)
	}
	if err := it.Error(); err != nil {
		return err
	}
	for len(keys) > 0 {
		size, used := binary.Uvarint(keys)
		keys = keys[used:]
		if err := w.batch.Delete(keys[:size], nil); err != nil {
			return err
		}
		keys = keys[size:]
	}
	w.deleted += n
	return nil
}

// newest returns a copy of the newest cell of a column in the current row.
func (w *mutator) newest(f *family, qualifier []byte) (value []byte, ts int64, ok bool, err error) {
	w.key = appendColumn(append(w.key[:0], w.row...), f.id, qualifier)
	w.end = afterTerminator(append(w.end[:0], w.key...))
	it, err := w.batch.NewIter(&pebble.IterOptions{LowerBound: w.key, UpperBound: w.end})
	if err != nil {
		return nil, 0, false, err
	}
	defer it.Close()
	if !it.First() {
		return nil, 0, false, it.Error()
	}
	col, err := splitColumn(it.Key()[len(w.row):])
	if err != nil {
		return nil, 0, false, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	value, err = it.ValueAndErr()
	return bytes.Clone(value), col.timestamp, true, err
}
