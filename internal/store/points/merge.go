package points

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/readrows"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// ErrNoMerge means that a schema with Merge cannot merge into the stored payload: it has an older format, is over the
// size limit, or is corrupt (the error then also matches codec.ErrCorrupt). The stored payload is unchanged.
var ErrNoMerge = errors.New("tsdb: cannot merge into the stored payload")

// merging returns w as a write that is merged into its row.
func (s *Table) merging(w *Write) bt.Merging {
	fresh, _ := w.D.Mutation(w.Cell, w.Payload)
	return bt.Merging{
		Key:   w.Key,
		Fresh: fresh,
		At: func() (bigtable.Filter, func(*bt.Row) bt.Merge) {
			h := w.D.Visibility(s.Clock())
			w.merged = nil
			return h.Filter(), func(row *bt.Row) bt.Merge { return w.into(h, row) }
		},
	}
}

// into returns the change that merges w into a row with a visible payload.
func (w *Write) into(h dataset.Visibility, row *bt.Row) bt.Merge {
	item, tag, err := h.Payload(row, w.Cell)
	switch {
	case err != nil:
		return bt.Merge{Err: fmt.Errorf("%w: %w", ErrNoMerge, err)}
	case item == nil:
		return bt.Merge{Err: fmt.Errorf("%w: no payload in a row that has one", ErrNoMerge)}
	case tag != 0:
		return bt.Merge{Err: invalid.New(ErrNoMerge, "the stored payload's tag", invalid.Quote(w.D.Tags[tag]), invalid.Quote(w.D.Tags[0]))}
	case len(item.Value) > dataset.MaxMerged:
		return bt.Merge{Err: invalid.New(ErrNoMerge, "the stored payload", fmt.Sprintf("%d bytes", len(item.Value)), fmt.Sprintf("at most %d bytes", dataset.MaxMerged))}
	}
	if err := w.changesImmutable(item.Value); err != nil {
		return bt.Merge{Err: err, Never: errors.Is(err, dataset.ErrExists)}
	}
	merged, err := mergeRecords(item.Value, w.Payload)
	switch {
	case errors.Is(err, codec.ErrCorrupt):
		return bt.Merge{Err: fmt.Errorf("%w: %w", ErrNoMerge, err)}
	case err != nil:
		return bt.Merge{Err: err}
	case len(merged) > dataset.MaxMerged:
		return bt.Merge{Err: invalid.New(dataset.ErrInvalid, "merged payload", fmt.Sprintf("%d bytes", len(merged)), fmt.Sprintf("at most %d bytes", dataset.MaxMerged))}
	case bytes.Equal(merged, item.Value) && item.Column == w.D.Columns[0].Name:
		w.merged = merged
		return bt.Merge{}
	}
	w.merged = merged
	m, _ := w.D.Mutation(w.Cell, merged)
	return bt.Merge{Same: unchanged(item), Mutation: m}
}

// mergeRecords merges two payloads of codec.Records into one: the result has the fields of both, and if both have a
// name, the value of written. If written adds nothing, the result has the same bytes as stored.
func mergeRecords(stored, written []byte) ([]byte, error) {
	records := codec.Records()
	old, err := records.Decode(stored)
	if err != nil {
		return nil, err
	}
	newer, err := records.Decode(written)
	if err != nil {
		return nil, err
	}
	merged, err := records.Append(nil, old.Merge(newer))
	if err != nil {
		return nil, err
	}
	return merged, nil
}

// changesImmutable returns an error that matches ErrExists if w would change an immutable field of a stored payload.
func (w *Write) changesImmutable(stored []byte) error {
	if w.D.Immutable == "" {
		return nil
	}
	old, err := codec.Records().Decode(stored)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoMerge, err)
	}
	written, err := codec.Records().Decode(w.Payload)
	if err != nil {
		return err
	}
	for name, v := range written.All() {
		if !strings.HasPrefix(name, w.D.Immutable) {
			continue
		}
		if have, ok := old.Lookup(name); ok && have != v {
			return invalid.New(dataset.ErrExists, "field "+invalid.Quote(name), v.String(), have.String()+", the stored value")
		}
	}
	return nil
}

// unchanged returns a filter that passes a cell only if it has not changed since it was read.
func unchanged(item *readrows.Cell) bigtable.Filter {
	family, qualifier, _ := strings.Cut(item.Column, ":")
	return bigtable.ChainFilters(
		bigtable.ColumnRangeFilter(family, qualifier, qualifier+"\x00"),
		bigtable.TimestampRangeFilterMicros(item.Timestamp, item.Timestamp+1000),
		bigtable.ValueRangeFilter(item.Value, append(bytes.Clone(item.Value), 0)),
	)
}
