package retention_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/retention"
)

// TestPlanShowsBackups: a plan says how long the service's own backups hold what is deleted.
func TestPlanShowsBackups(t *testing.T) {
	var policy *adminpb.Table_AutomatedBackupPolicy
	store, err := embedded.New(t.Context(), embedded.Options{DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			err := next(ctx, method, req, reply, cc, opts...)
			if table, ok := reply.(*adminpb.Table); ok && err == nil {
				table.EffectiveAutomatedBackupPolicy = policy
			}
			return err
		})}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	schema := tsdb.MustDefine("readings", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{})
	if err := store.Ensure(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		policy *adminpb.Table_AutomatedBackupPolicy
		want   string
	}{
		{nil, ""},
		{&adminpb.Table_AutomatedBackupPolicy{}, ""},
		{&adminpb.Table_AutomatedBackupPolicy{RetentionPeriod: durationpb.New(72 * time.Hour)}, "kept 3d"},
		{&adminpb.Table_AutomatedBackupPolicy{RetentionPeriod: durationpb.New(72 * time.Hour), Frequency: durationpb.New(24 * time.Hour)}, "every 1d, kept 3d"},
	} {
		policy = c.policy
		p, err := retention.NewPlan(t.Context(), store, schema)
		if err != nil {
			t.Fatal(err)
		}
		text := p.String()
		if c.want == "" && strings.Contains(text, "backups") || !strings.Contains(text, c.want) {
			t.Errorf("with %v the plan reads %q, want %q in it", c.policy, text, c.want)
		}
		doc, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := retention.ReadPlan(strings.NewReader(string(doc)))
		if err != nil || again.String() != text {
			t.Errorf("read again, the plan is %v, %v", again, err)
		}
	}
}
