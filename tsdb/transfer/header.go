package transfer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	kind    = "export"
	version = 1
	// maxDatasets and maxEntities bound a header.
	maxDatasets = 10_000
	maxEntities = 10_000
)

// header is the first line: the content of the file and the options of the export.
type header struct {
	Tidemark string            `json:"tidemark"`
	Version  int               `json:"version"`
	Tenant   string            `json:"tenant"`
	At       time.Time         `json:"at"`                 // start of the export
	From     *time.Time        `json:"from,omitempty"`     // the first instant
	To       *time.Time        `json:"to,omitempty"`       // the first instant after
	Entities [][]string        `json:"entities,omitempty"` // the only ones
	Datasets []catalog.Dataset `json:"datasets"`
	Key      string            `json:"key,omitempty"` // identifies the key of the sums; empty for none

	id       tenant.ID
	datasets []*dataset
}

// dataset is a dataset of the header.
type dataset struct {
	catalog.Dataset
	index          int
	precision      rowkey.Precision
	space          rowkey.Space
	oldest, newest int64 // of the interval, in units; empty if newest is before oldest
	entities       []string
}

// dataset returns the dataset of that name, or nil.
func (h *header) dataset(name string) *dataset {
	i, ok := slices.BinarySearchFunc(h.datasets, name, func(d *dataset, name string) int { return strings.Compare(d.Name, name) })
	if !ok {
		return nil
	}
	return h.datasets[i]
}

// parseHeader parses the first line, without its seal.
func parseHeader(text []byte) (*header, error) {
	h := &header{}
	if err := json.Unmarshal(append(slices.Clone(text), '}'), h); err != nil {
		return nil, fmt.Errorf("%w: the header does not decode: %w", ErrVersion, err)
	}
	if h.Tidemark != kind || h.Version != version {
		return nil, invalid.New(ErrVersion, "the header", invalid.Quote(h.Tidemark)+" "+strconv.Itoa(h.Version), `"export" 1`)
	}
	if err := h.resolve(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return h, nil
}

// resolve checks a header, and computes the derived members.
func (h *header) resolve() error {
	var err error
	if h.id, err = tenant.Parse(h.Tenant); err != nil {
		return err
	}
	if len(h.Datasets) > maxDatasets || len(h.Entities) > maxEntities {
		return invalid.New(tsdb.ErrInvalid, "datasets and entities", fmt.Sprintf("%d and %d", len(h.Datasets), len(h.Entities)), "at most 10000 each")
	}
	h.datasets = make([]*dataset, len(h.Datasets))
	for i, e := range h.Datasets {
		if i > 0 && h.Datasets[i-1].Name >= e.Name {
			return invalid.New(tsdb.ErrInvalid, "dataset", invalid.Quote(e.Name), "each name once, in ascending order")
		}
		if h.datasets[i], err = h.resolveDataset(i, e); err != nil {
			return fmt.Errorf("dataset %s: %w", invalid.Quote(e.Name), err)
		}
	}
	return nil
}

func (h *header) resolveDataset(index int, e catalog.Dataset) (*dataset, error) {
	space, kinds, precision, err := e.Space(h.id)
	if err != nil {
		return nil, err
	}
	d := &dataset{Dataset: e, index: index, precision: precision, space: space.WithKinds(kinds), newest: precision.Max()}
	ok := true
	if h.From != nil {
		if d.oldest, ok = d.precision.AtOrAfter(*h.From); !ok {
			d.oldest, d.newest = 1, 0
			return d, nil
		}
	}
	if h.To != nil {
		if d.newest, ok = d.precision.AtOrBefore(h.To.Add(-1)); !ok {
			d.oldest, d.newest = 1, 0
			return d, nil
		}
	}
	for _, parts := range h.Entities {
		if len(parts) != len(e.Key) {
			continue
		}
		path := rowkey.Path(parts...)
		if err := d.space.CheckPath(path); err != nil {
			return nil, err
		}
		d.entities = append(d.entities, path)
	}
	slices.Sort(d.entities)
	d.entities = slices.Compact(d.entities)
	return d, nil
}
