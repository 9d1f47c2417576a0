package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/examples/internal/infile"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// shownPoints is how many points a dry run shows.
const shownPoints = 5

// imported is the result of the import of a file.
type imported struct {
	File   string        `json:"file"`
	Format infile.Format `json:"format"`
	Tenant string        `json:"tenant"`
	State  string        `json:"state,omitempty"`
	DryRun bool          `json:"dry_run,omitempty"`
	importState
	Datasets []importedDataset `json:"datasets"`
	First    []importedPoint   `json:"first,omitempty"`
	Examples []refusedRecord   `json:"examples,omitempty"`
	LeftOut  map[string]uint64 `json:"left_out,omitempty"`

	seen       map[string]*inbound.Dataset
	unreported int64 // refused records, unless an earlier run has reported them with its exit code
}

// importedDataset is a dataset that points are stored in.
type importedDataset struct {
	Name string   `json:"name"`
	Key  []string `json:"key"`
	// In says of a dry run whether the store has it.
	In string `json:"in_store,omitempty"`
}

type importedPoint struct {
	Dataset string          `json:"dataset"`
	Entity  string          `json:"entity"`
	Time    string          `json:"time"`
	Fields  json.RawMessage `json:"fields"`
}

type refusedRecord struct {
	Line   int64  `json:"line"`
	Reason string `json:"reason"`
}

// sample keeps the dataset of a point, and the point itself if it is one of the first of a dry run.
func (i *imported) sample(p inbound.Point) {
	if i.seen[p.Dataset.Name()] == nil {
		if i.seen == nil {
			i.seen = map[string]*inbound.Dataset{}
		}
		i.seen[p.Dataset.Name()] = p.Dataset
		i.Datasets = append(i.Datasets, importedDataset{Name: p.Dataset.Name(), Key: p.Dataset.Schema().KeyFields()})
	}
	if !i.DryRun || len(i.First) == shownPoints {
		return
	}
	fields, err := json.Marshal(p.Record)
	if err != nil {
		fields = fmt.Appendf(nil, "%q", err)
	}
	i.First = append(i.First, importedPoint{p.Dataset.Name(), p.Entity.String(), instant.Text(p.Time.UTC()), fields})
}

// compare says what the store has of the datasets.
func (i *imported) compare(ctx context.Context, store *tsdb.Store) error {
	stored := map[string]bool{}
	if store != nil {
		for d, err := range store.Datasets(ctx) {
			if errors.Is(err, tsdb.ErrNoTable) {
				break
			}
			if err != nil {
				return err
			}
			stored[d.Name()] = true
		}
	}
	var faults []error
	for n := range i.Datasets {
		d := &i.Datasets[n]
		if d.In = "would be created"; !stored[d.Name] {
			continue
		}
		d.In = "exists"
		if err := store.Verify(ctx, i.seen[d.Name].Schema()); err != nil {
			d.In = "differs from what is stored"
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

func (i *imported) leftOut(left map[inbound.LeftOut]uint64) {
	for l, n := range left {
		if i.LeftOut == nil {
			i.LeftOut = map[string]uint64{}
		}
		i.LeftOut[l.Dataset+": "+l.Reason] = n
	}
}

// print prints the result in columns.
func (i *imported) print(w *tabwriter.Writer) {
	fmt.Fprintf(w, "File\t%s, %s, for %s\n", i.File, i.Format, i.Tenant)
	for _, d := range i.Datasets {
		in := ""
		if d.In != "" {
			in = ": " + d.In
		}
		fmt.Fprintf(w, "Dataset\t%s, by %s%s\n", d.Name, strings.Join(d.Key, ", "), in)
	}
	for _, p := range i.First {
		fmt.Fprintf(w, "Point\t%s %s %s %s\n", p.Dataset, cell(p.Entity), p.Time, cell(string(p.Fields)))
	}
	if st := i.importState; st.Version != 0 {
		stored := "Stored"
		if i.DryRun {
			stored = "Would be stored"
		}
		fmt.Fprintf(w, "Read\t%d records, %d of them without a value\n", st.Records, st.Blank)
		fmt.Fprintf(w, "%s\t%d, as %d points\n", stored, st.Records-st.Blank-st.Refused, st.Points)
		fmt.Fprintf(w, "Refused\t%d\n", st.Refused)
		for _, reason := range slices.Sorted(maps.Keys(st.Reasons)) {
			fmt.Fprintf(w, "\t%d: %s\n", st.Reasons[reason], reason)
		}
	}
	for _, e := range i.Examples {
		fmt.Fprintf(w, "Line %d\t%s\n", e.Line, cell(e.Reason))
	}
	if i.Errors != "" {
		fmt.Fprintf(w, "Errors\t%s\n", i.Errors)
	}
	for _, what := range slices.Sorted(maps.Keys(i.LeftOut)) {
		fmt.Fprintf(w, "Left out\t%d fields of %s\n", i.LeftOut[what], what)
	}
	if i.State != "" {
		fmt.Fprintf(w, "State\t%s\n", i.State)
	}
}
