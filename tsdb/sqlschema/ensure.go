package sqlschema

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// MaxSize bounds the serialized descriptors of a bundle, in bytes. It is a limit of this package, that of a gRPC message by default:
// Bigtable documents none.
const MaxSize = 4 << 20

var bundleID = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]{0,49}$`)

// Ensure adds the message types of the datasets' payloads to a schema bundle of the store's table, and creates the bundle if
// it is missing. Call it after Store.Ensure, at every start if you like; many programs may call it at once. If nothing is missing, it
// writes nothing. See the package's documentation for how bundles grow.
//
// The bundle's ID is 1 to 50 letters, digits and underscores, and does not begin with a digit, so that SQL needs no special
// characters. Each dataset needs a codec whose payloads are plain protobuf messages (codec.Messages): payloads that are
// compressed stay unreadable in SQL. Without datasets, Ensure does nothing.
//
// Errors:
//
//   - tsdb.ErrInvalid for an argument, for files of two datasets with one path and different contents, and for a bundle over MaxSize.
//   - A *tsdb.ConflictError if the bundle has a message, field or file that cannot be combined with the program's. It lists all.
//   - tsdb.ErrNoAdmin if the store has no admin client, and tsdb.ErrNoTable if the table does not exist.
//   - tsdb.ErrTenantMismatch if ctx carries a tenant: a bundle is shared by all tenants.
//   - An error of the service. The official emulator (bttest of the client's v1.58.0) has no schema bundles: it panics when it is asked
//     for one, and ends. The embedded engine has them.
//
// Ensure needs the permissions bigtable.schemaBundles.get, and create and update if something is missing; roles/bigtable.admin
// has them. It costs one admin call, and one more if something is missing, with the polls of its operation. It retries temporary failures within the scan timeout. It reads
// no rows. It is safe for concurrent use.
func Ensure(ctx context.Context, store *tsdb.Store, bundle string, datasets ...tsdb.Dataset) (err error) {
	ctx, op := inside.Watch(store).Begin(ctx, telemetry.SQLSchemaEnsure, telemetry.Subject{})
	defer func() { op.End(err) }()
	if have, ok := tenant.FromContext(ctx); ok {
		return fmt.Errorf("%w: %s, the call is for all tenants", tsdb.ErrTenantMismatch, invalid.Quote(have.String()))
	}
	if !bundleID.MatchString(bundle) {
		return invalid.New(tsdb.ErrInvalid, "bundle", invalid.Quote(bundle), "1 to 50 letters, digits and _, not beginning with a digit")
	}
	in, err := inside.OfStore(store)
	if err != nil {
		return err
	}
	declared, err := filesOf(datasets)
	if err != nil || len(datasets) == 0 {
		return err
	}
	admin, end, err := in.Admin(ctx)
	if err != nil {
		return err
	}
	defer end()
	e := ensurer{admin: admin, table: in.Name, id: bundle, declared: declared}
	return in.Whole.Retry(ctx, e.once)
}

// ensurer adds descriptors to one bundle.
type ensurer struct {
	admin     *bigtable.AdminClient
	table, id string
	declared  *descriptorpb.FileDescriptorSet
}

// once reads the bundle, and writes it if something is missing. It returns false if another program wrote it meanwhile.
func (e *ensurer) once(ctx context.Context) (done bool, err error) {
	have, err := e.admin.GetSchemaBundle(ctx, e.table, e.id)
	if status.Code(err) == codes.NotFound {
		return e.create(ctx)
	}
	if err != nil {
		return false, e.failed("read", err)
	}
	stored := new(descriptorpb.FileDescriptorSet)
	if err := proto.Unmarshal(have.SchemaBundle, stored); err != nil || len(stored.GetFile()) == 0 {
		return false, e.conflict([]string{"it holds no protobuf descriptors"})
	}
	merged, changed, diffs := merge(stored, e.declared)
	if len(diffs) > 0 {
		return false, e.conflict(diffs)
	}
	if !changed {
		return true, nil
	}
	conf, err := e.conf(merged)
	if err != nil {
		return false, err
	}
	conf.Etag = have.Etag
	if err := e.admin.UpdateSchemaBundle(ctx, bigtable.UpdateSchemaBundleConf{SchemaBundleConf: *conf}); err != nil {
		// The client hides the code of an operation that has failed. So look whether another program was faster.
		if now, again := e.admin.GetSchemaBundle(ctx, e.table, e.id); status.Code(again) == codes.NotFound || again == nil && now.Etag != have.Etag {
			return false, nil
		}
		return false, e.failed("update", err)
	}
	return true, nil
}

func (e *ensurer) create(ctx context.Context) (done bool, err error) {
	merged, _, diffs := merge(new(descriptorpb.FileDescriptorSet), e.declared)
	if len(diffs) > 0 {
		return false, e.conflict(diffs)
	}
	conf, err := e.conf(merged)
	if err != nil {
		return false, err
	}
	switch err := e.admin.CreateSchemaBundle(ctx, conf); status.Code(err) {
	case codes.OK:
		return true, nil
	case codes.AlreadyExists:
		return false, nil
	case codes.NotFound:
		return false, fmt.Errorf("%w: %w", tsdb.ErrNoTable, e.failed("create", err))
	default:
		return false, e.failed("create", err)
	}
}

func (e *ensurer) conf(set *descriptorpb.FileDescriptorSet) (*bigtable.SchemaBundleConf, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		return nil, e.failed("encode", err)
	}
	if len(b) > MaxSize {
		return nil, invalid.New(tsdb.ErrInvalid, "descriptors of schema bundle "+e.id, strconv.Itoa(len(b))+" bytes", "at most "+strconv.Itoa(MaxSize))
	}
	return &bigtable.SchemaBundleConf{TableID: e.table, SchemaBundleID: e.id, ProtoSchema: &bigtable.ProtoSchemaInfo{ProtoDescriptors: b}}, nil
}

func (e *ensurer) failed(what string, err error) error {
	return fmt.Errorf("sqlschema: %s schema bundle %s of table %s: %w", what, e.id, e.table, err)
}

func (e *ensurer) conflict(diffs []string) error {
	for i := range diffs {
		diffs[i] = "schema bundle " + e.id + ": " + diffs[i]
	}
	return &tsdb.ConflictError{Differences: diffs}
}
