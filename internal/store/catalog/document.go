package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Document is one of the store's own rows: a JSON object and the number of its writes. The zero Document means that the
// row does not exist.
type Document struct {
	JSON       []byte
	generation uint64
	assigned   []byte // of a profile: see Assignment
}

// Exists reports whether the row exists.
func (d Document) Exists() bool { return d.generation > 0 }

// Version returns how often the row was written; 0 if it does not exist.
func (d Document) Version() uint64 { return d.generation }

// LoadDocument reads the document in a row, for SaveDocument.
func LoadDocument(ctx context.Context, t *bt.Table, key string) (Document, error) {
	row, err := t.RowAsJudged(ctx, key, latest())
	if err != nil || row == nil {
		return Document{}, err
	}
	return ParseDocument(row)
}

// latest passes the newest cell of each of the store's own columns.
func latest() bigtable.Filter {
	return bigtable.ChainFilters(bigtable.FamilyFilter(Family), bigtable.LatestNFilter(1))
}

// ParseDocument returns the document in a row.
func ParseDocument(row *bt.Row) (Document, error) {
	text := value(row, columnGeneration)
	gen, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || gen == 0 {
		return Document{}, fmt.Errorf("the store's row %s has the generation %q, which is no number above 0", row.Key(), text)
	}
	return Document{JSON: value(row, columnDocument), generation: gen, assigned: value(row, columnAssigned)}, nil
}

// SaveDocument writes v, a JSON object, if the row is still old. It keeps members of old that v does not know, and adds
// also to the mutation; nil adds nothing. It returns what is stored then. It returns false, and changes nothing, if
// another writer changed the row first. If a write's response is lost, SaveDocument compares the row with its document,
// so documents of two writers must differ if it matters which one was first.
func SaveDocument(ctx context.Context, t *bt.Table, key string, v any, old Document, also func(*bigtable.Mutation)) (saved Document, ok bool, err error) {
	doc, err := merged(old.JSON, v)
	if err != nil {
		return old, false, err
	}
	next := Document{JSON: doc, generation: old.generation + 1}
	if !old.Exists() && strings.HasPrefix(key, rowkey.RemovalRows) { // such rows are created and deleted repeatedly
		next.generation = randomGeneration()
	}
	maybeApplied := false
	err = t.Retry(ctx, func(ctx context.Context) (bool, error) {
		if maybeApplied {
			have, err := LoadDocument(ctx, t, key)
			if err != nil {
				return false, err
			}
			if have.generation != old.generation {
				ok = have.generation == next.generation && bytes.Equal(have.JSON, next.JSON)
				return true, nil
			}
		}
		var out bt.Outcome
		ok, out = writeRow(ctx, t, key, old.generation, next.generation, next.JSON, also)
		maybeApplied = maybeApplied || out.State == bt.Unknown
		if out.Err == nil && !ok && maybeApplied {
			return false, status.Error(codes.Aborted, "tsdb: an answer was lost") // this call may have been the first
		}
		return out.Err == nil, out.Err
	})
	if err != nil || !ok {
		return old, false, err
	}
	return next, true, nil
}

// writeRow writes a document with its next generation, if the row still has the generation was, or does not exist if
// that is 0. It adds also to the mutation; nil adds nothing.
func writeRow(ctx context.Context, t *bt.Table, key string, was, next uint64, doc []byte, also func(*bigtable.Mutation)) (bool, bt.Outcome) {
	mut := bigtable.NewMutation()
	mut.Set(Family, columnDocument, 0, doc)
	mut.Set(Family, columnGeneration, 0, []byte(strconv.FormatUint(next, 10)))
	if also != nil {
		also(mut)
	}
	if was == 0 {
		exists, out := t.Conditional(ctx, key, bigtable.ColumnFilter(columnGeneration), nil, mut)
		return !exists && out.Err == nil, out
	}
	matched, out := t.Conditional(ctx, key, ofGeneration(was), mut, nil)
	return matched && out.Err == nil, out
}

// ofGeneration passes a cell of a row of that generation.
func ofGeneration(generation uint64) bigtable.Filter {
	return bigtable.ChainFilters(bigtable.ColumnFilter(columnGeneration), bigtable.ValueFilter(strconv.FormatUint(generation, 10)))
}

// deleteRow deletes one of the store's own rows if it still has the generation. Otherwise it returns false.
func deleteRow(ctx context.Context, t *bt.Table, key string, generation uint64) (ok bool, err error) {
	mut := bigtable.NewMutation()
	mut.DeleteRow()
	err = t.Retry(ctx, func(ctx context.Context) (bool, error) {
		var out bt.Outcome
		ok, out = t.Conditional(ctx, key, ofGeneration(generation), mut, nil)
		return out.Err == nil, out.Err
	})
	return ok, err
}

// DeleteDocumentIf deletes one of the store's own rows if it still holds the document. Otherwise it returns false.
func DeleteDocumentIf(ctx context.Context, t *bt.Table, key string, d Document) (ok bool, err error) {
	return deleteRow(ctx, t, key, d.generation)
}

// DeleteDocument deletes one of the store's own rows.
func DeleteDocument(ctx context.Context, t *bt.Table, key string) error {
	mut := bigtable.NewMutation()
	mut.DeleteRow()
	return t.Apply(ctx, key, mut).Err
}

// merged returns v as JSON, with the members of old that v lacks, except the named ones.
func merged(old []byte, v any, except ...string) ([]byte, error) {
	doc, err := json.Marshal(v)
	if err != nil || old == nil {
		return doc, err
	}
	var all, mine map[string]json.RawMessage
	if err := json.Unmarshal(old, &all); err != nil {
		return nil, fmt.Errorf("the store's row does not decode: %w", err)
	}
	if err := json.Unmarshal(doc, &mine); err != nil {
		return nil, err
	}
	for _, name := range except {
		delete(all, name)
	}
	maps.Copy(all, mine)
	return json.Marshal(all)
}
