// Tenantlife takes a tenant through its life: onboarded with a class of retention and a limit, stopped at the limit,
// exported, erased. Copy the calls that you need:
//
//	go run ./examples/tenantlife
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

// readings are kept for ever, or for 30 days if a tenant's profile says so.
var readings = tsdb.MustDefine("readings", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{
	Classes: []gc.Class{{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}},
})

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	limits, err := limit.New(limit.Table{Defaults: limit.Limits{PointsPerSecond: 1000}}, limit.Options{})
	if err != nil {
		return err
	}
	// In memory: give embedded.Options a folder, or use tsdb.Open on Cloud Bigtable.
	store, err := embedded.New(ctx, embedded.Options{StoreOptions: tsdb.StoreOptions{Limits: limits, ProfileLimits: true}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.Ensure(ctx, readings); err != nil {
		return err
	}

	acme := tenant.MustParse("acme")
	profile := tenants.Profile{Name: "Acme Ltd.", Retention: "d30", Limits: json.RawMessage(`{"points_per_second": 3}`)}
	if _, err := tenants.Onboard(ctx, store, acme, profile, tenants.OnboardOptions{}); err != nil {
		return err
	}
	repo := readings.For(store, acme)
	stored := 0
	for i := range 100 {
		err := repo.Put(ctx, tsdb.NewEntity(fmt.Sprintf("device-%d", i)), time.Now(), float64(i))
		if errors.Is(err, limit.ErrExceeded) {
			fmt.Fprintln(out, "stopped at the limit of the profile")
			break
		}
		if err != nil {
			return err
		}
		stored++
	}
	fmt.Fprintln(out, "stored some points:", stored > 0)

	var file bytes.Buffer
	exported, err := transfer.Export(ctx, store, acme, &file, transfer.ExportOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "exported all of them:", exported.Points == int64(stored))

	// The mark stops all programs within seconds. Settle is how long to wait for their calls; here is no other program.
	report, err := tenants.Erase(ctx, store, acme, tenants.EraseOptions{By: "ops", Reason: "end of contract", Settle: 1})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "erased, and no row is left:", !report.Verified.IsZero())
	_, err = repo.Latest(ctx, tsdb.NewEntity("device-0"))
	fmt.Fprintln(out, "afterwards:", err)
	return nil
}
