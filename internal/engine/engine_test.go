package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"go.uber.org/goleak"
	"google.golang.org/api/option"
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/engine/inproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// rig is an engine with official clients connected to it.
type rig struct {
	*engine.Engine
	conn  *grpc.ClientConn
	data  *bigtable.Client
	admin *bigtable.AdminClient
	ctx   context.Context
}

const (
	project  = "p"
	instance = "i"
	parent   = "projects/p/instances/i"
	tableID  = "t"
	fullName = parent + "/tables/" + tableID
)

// open opens an engine. It closes the engine after the test, with all clients and reads that the test left open.
func open(t testing.TB, o engine.Options) *rig {
	t.Helper()
	if o.GCInterval == 0 {
		o.GCInterval = -1
	}
	e, err := engine.Open(o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	r := dial(t, e)
	t.Cleanup(func() {
		r.disconnect(t)
		if err := e.Close(); err != nil && err != engine.ErrClosed {
			t.Errorf("Close: %v", err)
		}
	})
	return r
}

func dial(t testing.TB, e *engine.Engine) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	conn, err := inproc.Dial(e)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	data, err := bigtable.NewClientWithConfig(ctx, project, instance,
		bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	admin, err := bigtable.NewAdminClient(ctx, project, instance, option.WithGRPCConn(conn))
	if err != nil {
		t.Fatalf("NewAdminClient: %v", err)
	}
	return &rig{Engine: e, conn: conn, data: data, admin: admin, ctx: ctx}
}

func (r *rig) disconnect(t testing.TB) {
	t.Helper()
	_ = r.admin.Close() // closes the connection that both share
	_ = r.data.Close()
}

// create makes the table "t" with families "f", "g" (plain) and "sum", "min", "max" (aggregates).
func (r *rig) create(t testing.TB) *bigtable.Table {
	t.Helper()
	r.createWith(t, map[string]bigtable.Family{
		"f": {}, "g": {}, "sum": aggregate(bigtable.SumAggregator{}), "min": aggregate(bigtable.MinAggregator{}),
		"max": aggregate(bigtable.MaxAggregator{}),
	})
	return r.data.Open(tableID)
}

func (r *rig) createWith(t testing.TB, families map[string]bigtable.Family) {
	t.Helper()
	err := r.admin.CreateTableFromConf(r.ctx, &bigtable.TableConf{TableID: tableID, ColumnFamilies: families})
	if err != nil {
		t.Fatalf("CreateTable: %v", err)
	}
}

func aggregate(a bigtable.Aggregator) bigtable.Family {
	return bigtable.Family{ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: a}}
}

func set(family, column string, micros int64, value string) *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.Set(family, column, bigtable.Timestamp(micros), []byte(value))
	return m
}

func apply(t testing.TB, r *rig, row string, m *bigtable.Mutation) {
	t.Helper()
	if err := r.data.Open(tableID).Apply(r.ctx, row, m); err != nil {
		t.Fatalf("Apply to %q: %v", row, err)
	}
}

// dump renders rows as "key family:column@micros=value" lines.
func dump(t testing.TB, r *rig, set bigtable.RowSet, opts ...bigtable.ReadOption) []string {
	t.Helper()
	out, err := read(r, r.data.Open(tableID), set, opts...)
	if err != nil {
		t.Fatalf("ReadRows: %v", err)
	}
	return out
}

func read(r *rig, table bigtable.TableAPI, set bigtable.RowSet, opts ...bigtable.ReadOption) ([]string, error) {
	out := []string{}
	err := table.ReadRows(r.ctx, set, func(row bigtable.Row) bool {
		for _, family := range []string{"f", "g", "h", "max", "min", "sum"} {
			for _, c := range row[family] {
				out = append(out, fmt.Sprintf("%s %s@%d=%s", c.Row, c.Column, c.Timestamp, c.Value))
			}
		}
		return true
	}, opts...)
	return out, err
}
