package tsdb

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// ErrNoMerge: a merging schema has at that entity and time what it cannot merge into: a payload in an older format, one
// that is over the limit, or one that is corrupt (then the error matches codec.ErrCorrupt too). It was left as it is.
var ErrNoMerge = errors.New("tsdb: what is stored at that time cannot be merged into")

// maxMerged bounds the payloads of a merging schema: the filter by which a row is known to be unchanged holds the payload
// twice, and Bigtable takes filters of up to 20,480 bytes.
const maxMerged = 8 << 10

// maxFixed bounds the names by which fixed fields are known.
const maxFixed = 32

// maxPayload returns how large a payload of the dataset may be, in bytes.
func (d *dataset) maxPayload() int {
	if d.merge {
		return maxMerged
	}
	return maxPayload / max(1, d.head.Points) // the payloads of a head share what one cell may have
}

// checkMerge refuses a schema whose writes cannot merge though they are to.
func (d *dataset) checkMerge() error {
	switch {
	case !d.merge && d.fixed != "":
		return invalid.New(ErrInvalid, "Immutable", invalid.Quote(d.fixed), "empty without Merge")
	case !d.merge:
		return nil
	case d.firstWins:
		return invalid.New(ErrInvalid, "Merge", "true", "false with FirstWins")
	case d.tags[0] != codec.Records().Tag():
		return invalid.New(ErrInvalid, "Merge", "true with a codec that writes "+invalid.Quote(d.tags[0]), "codec.Records, whose payloads can be merged")
	case len(d.fixed) > maxFixed || !utf8.ValidString(d.fixed):
		return invalid.New(ErrInvalid, "Immutable", invalid.Quote(d.fixed), fmt.Sprintf("at most %d bytes of UTF-8", maxFixed))
	}
	return nil
}

// merging returns the write of w into what its row holds.
func (s *Store) merging(w *write) bt.Merging {
	return bt.Merging{
		Key:   w.key,
		Fresh: w.entry().Mutation,
		At: func() (bigtable.Filter, func(bigtable.Row) bt.Merge) {
			h := w.d.horizon(s.clock())
			return h.filter(), func(row bigtable.Row) bt.Merge { return w.into(h, row) }
		},
	}
}

// into returns how w goes into a row that holds a visible payload.
func (w *write) into(h horizon, row bigtable.Row) bt.Merge {
	item, tag, err := h.payload(row, w.cell)
	switch {
	case err != nil:
		return bt.Merge{Err: fmt.Errorf("%w: %w", ErrNoMerge, err)}
	case item == nil:
		return bt.Merge{Err: fmt.Errorf("%w: no payload in a row that has one", ErrNoMerge)}
	case tag != 0:
		return bt.Merge{Err: invalid.New(ErrNoMerge, "the stored payload's tag", invalid.Quote(w.d.tags[tag]), invalid.Quote(w.d.tags[0]))}
	case len(item.Value) > maxMerged:
		return bt.Merge{Err: invalid.New(ErrNoMerge, "the stored payload", fmt.Sprintf("%d bytes", len(item.Value)), fmt.Sprintf("at most %d bytes", maxMerged))}
	}
	if err := w.changesFixed(item.Value); err != nil {
		return bt.Merge{Err: err, Never: errors.Is(err, ErrExists)}
	}
	merged, err := codec.MergeRecords(item.Value, w.payload)
	switch {
	case errors.Is(err, codec.ErrCorrupt):
		return bt.Merge{Err: fmt.Errorf("%w: %w", ErrNoMerge, err)}
	case err != nil:
		return bt.Merge{Err: err}
	case len(merged) > maxMerged:
		return bt.Merge{Err: invalid.New(ErrInvalid, "merged payload", fmt.Sprintf("%d bytes", len(merged)), fmt.Sprintf("at most %d bytes", maxMerged))}
	case bytes.Equal(merged, item.Value) && item.Column == w.d.columns[0].name:
		return bt.Merge{}
	}
	m, _ := w.d.write(w.cell, merged)
	return bt.Merge{Same: unchanged(item), Mutation: m}
}

// changesFixed returns an error that matches ErrExists where w would change a fixed field of a stored payload.
func (w *write) changesFixed(stored []byte) error {
	if w.d.fixed == "" {
		return nil
	}
	old, err := codec.Records().Decode(stored)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoMerge, err)
	}
	written, err := codec.Records().Decode(w.payload)
	if err != nil {
		return err
	}
	for name, v := range written.All() {
		if !strings.HasPrefix(name, w.d.fixed) {
			continue
		}
		if have, ok := old.Lookup(name); ok && have != v {
			return invalid.New(ErrExists, "field "+invalid.Quote(name), v.String(), have.String()+", as it is stored")
		}
	}
	return nil
}

// unchanged passes a cell as long as it is the one that was read.
func unchanged(item *bigtable.ReadItem) bigtable.Filter {
	family, qualifier, _ := strings.Cut(item.Column, ":")
	return bigtable.ChainFilters(
		bigtable.ColumnRangeFilter(family, qualifier, qualifier+"\x00"),
		bigtable.TimestampRangeFilterMicros(item.Timestamp, item.Timestamp+1000),
		bigtable.ValueRangeFilter(item.Value, append(bytes.Clone(item.Value), 0)),
	)
}
