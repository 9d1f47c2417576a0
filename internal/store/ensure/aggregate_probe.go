package ensure

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// ErrNoConditionalAggregates means that the service does not add in conditional writes.
var ErrNoConditionalAggregates = errors.New("tsdb: the service does not add up in conditional writes, which rollups other than at-most-once need")

const (
	probeSum  = "n" // qualifiers in the probe's row
	probeStep = "g"
)

// probe tests whether the service accepts in conditional writes what rollups need: additions to aggregate cells, also
// after their deletion in the same write. It also tests whether the service adds them. It writes its own row in the
// families of a rollup, and deletes it. It returns false if its writes are not visible yet: another cluster may show
// them late.
func (e *Ensurer) probe(ctx context.Context, u *dataset.Rollup) (seen bool, err error) {
	p := aggregateProbe{table: e.Table, key: rowkey.ProbeRows + rand.Text(), f: u.Families, at: bigtable.Time(e.Table.Clock()).TruncateToMilliseconds()}
	err = p.write(ctx)
	if err == nil {
		seen, err = p.check(ctx)
	}
	gone := bigtable.NewMutation()
	gone.DeleteRow()
	if out := e.Table.Whole.Apply(ctx, p.key, gone); err == nil && out.State != bt.Stored {
		return false, e.Table.Explain(out.Err)
	}
	return seen, err
}

type aggregateProbe struct {
	table *points.Table
	key   string
	f     dataset.RollupFamilies
	at    bigtable.Timestamp
}

// write adds 5. If the control cell shows that this is the second write, it deletes the sum and adds 3 and 4.
func (p *aggregateProbe) write(ctx context.Context) error {
	first := bigtable.NewMutation()
	p.add(first, 5)
	first.Set(p.f.Control, probeStep, p.at, []byte("1"))
	written := bigtable.ChainFilters(bigtable.FamilyFilter(regexp.QuoteMeta(p.f.Control)), bigtable.ColumnFilter(probeStep))
	if err := p.conditional(ctx, written, nil, first, false); err != nil {
		return err
	}
	second := bigtable.NewMutation()
	for _, family := range []string{p.f.Sum, p.f.Min, p.f.Max} {
		second.DeleteTimestampRange(family, probeSum, p.at, dataset.After(p.at))
	}
	p.add(second, 3)
	p.add(second, 4)
	second.Set(p.f.Control, probeStep, p.at, []byte("2"))
	return p.conditional(ctx, bigtable.ChainFilters(written, bigtable.ValueFilter("1")), second, nil, true)
}

func (p *aggregateProbe) add(m *bigtable.Mutation, n int64) {
	for _, family := range []string{p.f.Sum, p.f.Min, p.f.Max} {
		m.AddIntToCell(family, probeSum, p.at, n)
	}
}

func (p *aggregateProbe) conditional(ctx context.Context, cond bigtable.Filter, then, otherwise *bigtable.Mutation, want bool) error {
	matched, out := p.table.Whole.Conditional(ctx, p.key, cond, then, otherwise)
	switch status.Code(out.Err) {
	case codes.OK:
	case codes.InvalidArgument, codes.Unimplemented:
		return fmt.Errorf("%w: table %s: %w", ErrNoConditionalAggregates, p.table.Name, out.Err)
	case codes.FailedPrecondition:
		return fmt.Errorf("tsdb: try additions in conditional writes in table %s: conditional writes need an app profile with single-cluster routing (Config.ConditionalAppProfile): %w", p.table.Name, out.Err)
	}
	if out.Err != nil {
		return fmt.Errorf("tsdb: try additions in conditional writes in table %s: %w", p.table.Name, out.Err)
	}
	if matched != want {
		return fmt.Errorf("%w: table %s: its conditions do not see earlier writes", ErrNoConditionalAggregates, p.table.Name)
	}
	return nil
}

// check compares the stored cells with the writes. A read sees the row at one moment, so the control cell shows whether
// it is the last state.
func (p *aggregateProbe) check(ctx context.Context) (seen bool, err error) {
	row, err := p.table.Whole.RowAsJudged(ctx, p.key, bigtable.LatestNFilter(1))
	if err != nil {
		return false, p.table.Explain(err)
	}
	if g := row.Family(p.f.Control); len(g) != 1 || string(g[0].Value) != "2" {
		return false, nil
	}
	for _, w := range []struct {
		family, what string
		want         int64
	}{{p.f.Sum, "sum", 7}, {p.f.Min, "minimum", 3}, {p.f.Max, "maximum", 4}} {
		items := row.Family(w.family)
		if len(items) == 1 && len(items[0].Value) == 8 && int64(binary.BigEndian.Uint64(items[0].Value)) == w.want {
			continue
		}
		got := "nothing"
		if len(items) > 0 {
			got = fmt.Sprintf("%x", items[0].Value)
		}
		return true, fmt.Errorf("%w: table %s: the %s of 3 and 4, instead of 5, is %s", ErrNoConditionalAggregates, p.table.Name, w.what, got)
	}
	return true, nil
}
