package retention

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// room is a store's internals with its admin client.
type room struct {
	inside.Store
	admin *bigtable.AdminClient
	path  string // the table's full name
}

// enter prepares a store for an operator's call, and returns the function that ends the call.
func enter(ctx context.Context, store *tsdb.Store) (room, func(), error) {
	if have, ok := tenant.FromContext(ctx); ok {
		return room{}, nil, fmt.Errorf("%w: %s, the call is on all tenants", tsdb.ErrTenantMismatch, invalid.Quote(have.String()))
	}
	in, err := inside.Of(store).Internals()
	if err != nil {
		return room{}, nil, err
	}
	r := room{Store: in}
	if r.path, err = in.Whole.Path(ctx); err != nil {
		return r, nil, in.Explain(err)
	}
	admin, end, err := in.Admin(ctx)
	r.admin = admin
	return r, end, err
}

// actual is the state of a table.
type actual struct {
	exists   bool
	families map[string]family
	catalog  catalog.State
	backups  string // what the service does by itself; empty for nothing
}

// family is a column family of the table.
type family struct {
	policy gc.Policy
	err    error  // why package gc cannot express the policy
	text   string // the policy for people to read
	kind   bigtable.Type

	// age is the age at which the policy removes a cell without newer cells, also if package gc cannot express the
	// policy; bounded is false if it removes none.
	age     time.Duration
	bounded bool
}

// look reads the table's families and the whole catalogue.
func (r room) look(ctx context.Context) (actual, error) {
	t, err := r.table(ctx)
	if status.Code(err) == codes.NotFound {
		return actual{}, nil
	}
	if err != nil {
		return actual{}, err
	}
	a := actual{exists: true, families: familiesOf(t), backups: backupsOf(t)}
	if _, ok := a.families[catalog.Family]; !ok {
		return a, nil
	}
	if a.catalog, err = catalog.LoadAll(ctx, r.Whole.SingleCluster()); err != nil {
		return a, fmt.Errorf("retention: read the catalogue: %w", r.Explain(err))
	}
	return a, nil
}

// table reads the table's families.
func (r room) table(ctx context.Context) (*adminpb.Table, error) {
	t, err := r.admin.TableAdminClientV2().GetTable(ctx, &adminpb.GetTableRequest{Name: r.path, View: adminpb.Table_SCHEMA_VIEW})
	if err != nil {
		return nil, fmt.Errorf("retention: read table %s: %w", r.Name, err)
	}
	return t, nil
}

// backupsOf returns the service's policy of automated backups as text.
func backupsOf(t *adminpb.Table) string {
	policy := t.GetEffectiveAutomatedBackupPolicy()
	if policy == nil {
		policy = t.GetAutomatedBackupPolicy()
	}
	kept := policy.GetRetentionPeriod().AsDuration()
	if kept <= 0 {
		return ""
	}
	text := "kept " + ageText(kept)
	if every := policy.GetFrequency().AsDuration(); every > 0 {
		text = "every " + ageText(every) + ", " + text
	}
	return text
}

func familiesOf(t *adminpb.Table) map[string]family {
	out := make(map[string]family, len(t.GetColumnFamilies()))
	for name, f := range t.GetColumnFamilies() {
		have := family{}
		if have.policy, have.text, have.err = policyOf(f.GetGcRule(), 0); have.err == nil {
			have.text = have.policy.String()
		} else {
			have.policy = gc.Never() // the policy is unknown, so assume that it keeps everything
		}
		have.age, have.bounded = ageOf(f.GetGcRule(), 0)
		if f.GetValueType() != nil {
			have.kind = bigtable.ProtoToType(f.GetValueType())
		}
		out[name] = have
	}
	return out
}

// seen is the table's state when the plan was made: each family, and each dataset of the catalogue.
type seen struct {
	Families map[string]string `json:"families"`
	Datasets map[string]string `json:"datasets"`
	// Halfway are the datasets that are recorded in two steps, as they are after the first step.
	Halfway map[string]string `json:"halfway,omitempty"`
	// Settings are what plans of earlier versions saw of the table. Nothing uses them; they are read so that such plans
	// are accepted.
	Settings map[string]string `json:"settings,omitempty"`
}

func (a actual) seen() seen {
	s := seen{Families: map[string]string{}, Datasets: map[string]string{}}
	for name, f := range a.families {
		s.Families[name] = f.text + kindOf(f.kind)
	}
	for name, e := range a.catalog.Datasets {
		s.Datasets[name] = fingerprint(e.Dataset)
	}
	return s
}

// fingerprint is equal for datasets with equal catalogue entries.
func fingerprint(d catalog.Dataset) string {
	doc, err := json.Marshal(d)
	if err != nil {
		return err.Error() // strings, numbers and lists of them always marshal
	}
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:12])
}
