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

// ErrNoMerge: a merging schema has at that entity and time what it cannot merge into: a payload in an older format, one
// that is over the limit, or one that is corrupt (then the error matches codec.ErrCorrupt too). It was left as it is.
var ErrNoMerge = errors.New("tsdb: what is stored at that time cannot be merged into")

// merging returns the write of w into what its row holds.
func (s *Table) merging(w *Write) bt.Merging {
	fresh, _ := w.D.Mutation(w.Cell, w.Payload)
	return bt.Merging{
		Key:   w.Key,
		Fresh: fresh,
		At: func() (bigtable.Filter, func(*bt.Row) bt.Merge) {
			h := w.D.Visibility(s.Clock())
			return h.Filter(), func(row *bt.Row) bt.Merge { return w.into(h, row) }
		},
	}
}

// into returns how w goes into a row that holds a visible payload.
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
	if err := w.changesFixed(item.Value); err != nil {
		return bt.Merge{Err: err, Never: errors.Is(err, dataset.ErrExists)}
	}
	merged, err := codec.MergeRecords(item.Value, w.Payload)
	switch {
	case errors.Is(err, codec.ErrCorrupt):
		return bt.Merge{Err: fmt.Errorf("%w: %w", ErrNoMerge, err)}
	case err != nil:
		return bt.Merge{Err: err}
	case len(merged) > dataset.MaxMerged:
		return bt.Merge{Err: invalid.New(dataset.ErrInvalid, "merged payload", fmt.Sprintf("%d bytes", len(merged)), fmt.Sprintf("at most %d bytes", dataset.MaxMerged))}
	case bytes.Equal(merged, item.Value) && item.Column == w.D.Columns[0].Name:
		return bt.Merge{}
	}
	m, _ := w.D.Mutation(w.Cell, merged)
	return bt.Merge{Same: unchanged(item), Mutation: m}
}

// changesFixed returns an error that matches ErrExists where w would change a fixed field of a stored payload.
func (w *Write) changesFixed(stored []byte) error {
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
			return invalid.New(dataset.ErrExists, "field "+invalid.Quote(name), v.String(), have.String()+", as it is stored")
		}
	}
	return nil
}

// unchanged passes a cell as long as it is the one that was read.
func unchanged(item *readrows.Cell) bigtable.Filter {
	family, qualifier, _ := strings.Cut(item.Column, ":")
	return bigtable.ChainFilters(
		bigtable.ColumnRangeFilter(family, qualifier, qualifier+"\x00"),
		bigtable.TimestampRangeFilterMicros(item.Timestamp, item.Timestamp+1000),
		bigtable.ValueRangeFilter(item.Value, append(bytes.Clone(item.Value), 0)),
	)
}
