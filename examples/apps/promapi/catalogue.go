package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	otel "go.opentelemetry.io/otel/metric"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

// catalogueFor is how long the datasets are used before the catalogue is read again.
const catalogueFor = time.Minute

// catalogue is the datasets that are shown as metrics: all but that of remote write. Those that programs create later
// are found within a minute. It is safe for concurrent use.
type catalogue struct {
	store    *tsdb.Store
	messages *messages
	log      *slog.Logger
	refused  otel.Int64Counter

	mu       sync.Mutex
	datasets []*mapped // replaced as a whole
	reported map[string]bool
	next     time.Time // when the catalogue is read again
}

// openCatalogue reads the catalogue. Two names that would make one metric are an error with both.
func openCatalogue(ctx context.Context, store *tsdb.Store, of *messages, log *slog.Logger, meters otel.MeterProvider) (*catalogue, error) {
	refused, err := meters.Meter("promapi").Int64Counter("promapi.datasets.refused", otel.WithUnit("{dataset}"),
		otel.WithDescription("Datasets that were created while the program runs, and are not shown because their names clash"))
	if err != nil {
		return nil, err
	}
	c := &catalogue{store: store, messages: of, log: log, refused: refused, next: time.Now().Add(catalogueFor), reported: map[string]bool{}}
	found, problems, err := c.read(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		if _, clash := errors.AsType[clashingNames](p); clash {
			return nil, p
		}
		c.report(ctx, p)
	}
	c.datasets = found
	return c, nil
}

// current returns the datasets. Once a minute the caller waits until the catalogue is read again. If that fails, or a
// new dataset clashes with one that is shown, the others stay.
func (c *catalogue) current(ctx context.Context) []*mapped {
	c.mu.Lock()
	shown := c.datasets
	fresh := time.Now().Before(c.next)
	if !fresh {
		c.next = time.Now().Add(catalogueFor) // other callers do not wait
	}
	c.mu.Unlock()
	if fresh {
		return shown
	}
	found, problems, err := c.read(ctx, shown)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ctx.Err() != nil: // the next caller tries again
		c.next = time.Time{}
	case err != nil:
		c.log.Warn("the catalogue cannot be read; datasets that were created since are not shown yet", "error", err)
	default:
		c.datasets = found
	}
	for _, p := range problems {
		c.report(ctx, p)
	}
	return c.datasets
}

// mostReported is of how many problems the catalogue knows that they are in the log.
const mostReported = 10_000

// report logs once why something is not shown.
func (c *catalogue) report(ctx context.Context, why error) {
	if c.reported[why.Error()] {
		return
	}
	if len(c.reported) >= mostReported {
		clear(c.reported)
	}
	c.reported[why.Error()] = true
	c.log.Warn("a dataset, or a part of it, is not shown", "error", why)
	if _, clash := errors.AsType[clashingNames](why); clash {
		c.refused.Add(ctx, 1)
	}
}

// clashingNames says that two things would have one name.
type clashingNames string

func (e clashingNames) Error() string { return string(e) }

// read reads the catalogue. It returns the datasets that can be shown, and why others, or parts of them, cannot.
// Datasets that are shown keep their names.
func (c *catalogue) read(ctx context.Context, shown []*mapped) (all []*mapped, problems []error, err error) {
	var old, added []tsdb.Dataset
	for d, err := range c.store.Datasets(ctx) {
		switch {
		case errors.Is(err, tsdb.ErrUnreadableEntry):
			problems = append(problems, err)
		case err != nil:
			return nil, nil, err
		case d.Name() == promDataset:
		case slices.ContainsFunc(shown, func(m *mapped) bool { return m.of == d.Name() }):
			old = append(old, d)
		default:
			added = append(added, d)
		}
	}
	byName := map[string]string{}
	for _, d := range append(old, added...) {
		m, wrong := c.mapped(d, shown)
		if m != nil {
			if other, taken := byName[m.name]; taken {
				m, wrong = nil, append(wrong, clashingNames(fmt.Sprintf("the datasets %s and %s would both make metrics of the name %s", other, m.of, m.name)))
			}
		}
		problems = append(problems, wrong...)
		if m != nil {
			byName[m.name] = m.of
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *mapped) int { return strings.Compare(a.of, b.of) })
	return all, problems, nil
}

// mapped returns a dataset as metrics, or nil, and what is wrong with it. A dataset that has not changed stays the
// same.
func (c *catalogue) mapped(d tsdb.Dataset, shown []*mapped) (m *mapped, wrong []error) {
	of := dynamic.Describe(d)
	for _, m := range shown {
		if m.of == of.Name && reflect.DeepEqual(m.described, of) {
			return m, nil
		}
	}
	m = &mapped{dataset: d, described: of, of: of.Name, name: labelName(of.Name), options: c.messages.options(of), numbers: map[string]*number{}}
	for _, field := range of.Key {
		label := labelName(field.Name)
		if slices.Contains(m.labels, label) || label == model.MetricNameLabel {
			return nil, []error{clashingNames(fmt.Sprintf("two key fields of the dataset %s would make the label %s: %s and another", m.of, label, field.Name))}
		}
		m.labels = append(m.labels, label)
	}
	var err error
	m.whole, err = dynamic.Schema(d, m.options)
	if err != nil {
		if !errors.Is(err, codec.ErrUnknownTag) {
			return nil, []error{err}
		}
		wrong = append(wrong, fmt.Errorf("its payloads cannot be read; -message names the messages of protobuf: %w", err))
	}
	err = m.addRollups()
	if err != nil {
		return nil, append(wrong, err)
	}
	for _, r := range of.Rollups {
		if m.stored[r.Name] == nil {
			wrong = append(wrong, fmt.Errorf("the rollup %s of dataset %s cannot be defined here, for example because of its time zone %s", r.Name, m.of, r.Zone))
		}
	}
	return m, wrong
}
