package bt

import (
	"errors"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// Mutator collects the mutations of one row. A *bigtable.Mutation is a Mutator.
type Mutator interface {
	Set(family, column string, ts bigtable.Timestamp, value []byte)
	DeleteCellsInColumn(family, column string)
}

// Mutations are the mutations of one entry. The guard encodes them into the request directly, in memory that all
// entries of the request share.
type Mutations interface{ AddTo(m Mutator) }

// The client gets this row instead of such entries. It has neither a key nor mutations, so the service would refuse it.
var (
	standInKeys = []string{""}
	standIn     = []*bigtable.Mutation{bigtable.NewMutation()}
)

// errStandIn means that the stand-in row did not pass the guard, so no entry was sent.
var errStandIn = errors.New("tsdb: a write did not pass the interceptors that an earlier one passed")

// requestEntries returns the entries in the form of a request. It returns nil if there are none or if one has a
// *bigtable.Mutation.
func requestEntries(entries []Entry) []*btpb.MutateRowsRequest_Entry {
	if len(entries) == 0 {
		return nil
	}
	keys, mutations := 0, 0
	for i := range entries {
		if entries[i].Direct == nil {
			return nil
		}
		keys += len(entries[i].Key)
		mutations += entries[i].Mutations
	}
	s := slab{
		keys: make([]byte, 0, keys), ops: make([]*btpb.Mutation, 0, mutations), mutations: make([]btpb.Mutation, mutations),
		sets: make([]btpb.Mutation_SetCell_, len(entries)), cells: make([]btpb.Mutation_SetCell, len(entries)),
	}
	rows, out := make([]btpb.MutateRowsRequest_Entry, len(entries)), make([]*btpb.MutateRowsRequest_Entry, len(entries))
	for i := range entries {
		from, first := len(s.keys), len(s.ops)
		s.keys = append(s.keys, entries[i].Key...)
		entries[i].Direct.AddTo(&s)
		rows[i].RowKey = s.keys[from:len(s.keys):len(s.keys)]
		rows[i].Mutations = s.ops[first:len(s.ops):len(s.ops)]
		out[i] = &rows[i]
	}
	return out
}

// slab is the memory of the entries of one request. It is never reused: an in-process engine may still read a request
// after the call has returned.
type slab struct {
	keys      []byte
	ops       []*btpb.Mutation
	mutations []btpb.Mutation
	sets      []btpb.Mutation_SetCell_
	cells     []btpb.Mutation_SetCell

	column string
	name   []byte // of column
}

// rowMutations are the mutations of one row, which are often one: one allocation.
type rowMutations struct {
	slab
	op       [1]*btpb.Mutation
	mutation [1]btpb.Mutation
	set      [1]btpb.Mutation_SetCell_
	cell     [1]btpb.Mutation_SetCell
}

// rowRequest returns the key and the mutations of an entry in the form of a request.
func rowRequest(e *Entry) *rowMutations {
	m := new(rowMutations)
	m.keys, m.ops, m.mutations, m.sets, m.cells = []byte(e.Key), m.op[:0], m.mutation[:], m.set[:], m.cell[:]
	if e.Mutations > 1 {
		m.ops, m.mutations = make([]*btpb.Mutation, 0, e.Mutations), make([]btpb.Mutation, e.Mutations)
	}
	e.Direct.AddTo(m)
	return m
}

// next returns an unused element of memory, and allocates more if none is left.
func next[T any](memory *[]T) *T {
	if len(*memory) == 0 {
		*memory = make([]T, 64)
	}
	first := &(*memory)[0]
	*memory = (*memory)[1:]
	return first
}

// qualifier returns a column name as bytes, which all mutations of the column share.
func (s *slab) qualifier(column string) []byte {
	if s.name == nil || s.column != column {
		s.column, s.name = column, []byte(column)
	}
	return s.name
}

func (s *slab) Set(family, column string, ts bigtable.Timestamp, value []byte) {
	cell, set, op := next(&s.cells), next(&s.sets), next(&s.mutations)
	cell.FamilyName, cell.ColumnQualifier, cell.TimestampMicros, cell.Value = family, s.qualifier(column), int64(ts), value
	set.SetCell = cell
	op.Mutation = set
	s.ops = append(s.ops, op)
}

func (s *slab) DeleteCellsInColumn(family, column string) {
	op := next(&s.mutations)
	op.Mutation = &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: &btpb.Mutation_DeleteFromColumn{FamilyName: family, ColumnQualifier: s.qualifier(column)}}
	s.ops = append(s.ops, op)
}
