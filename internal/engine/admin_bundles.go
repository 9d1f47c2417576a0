package engine

import (
	"context"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"github.com/cockroachdb/pebble/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const bundlesPart = "/schemaBundles/"

// CreateSchemaBundle implements the service's method.
func (e *Engine) CreateSchemaBundle(ctx context.Context, req *adminpb.CreateSchemaBundleRequest) (*longrunningpb.Operation, error) {
	start := timestamppb.New(e.clock())
	var op *longrunningpb.Operation
	err := e.change(ctx, func() error {
		t, err := e.table(req.GetParent())
		if err != nil {
			return err
		}
		id := req.GetSchemaBundleId()
		if !childID.MatchString(id) {
			return invalidf("Field schema_bundle_id %q: want 1 to 50 of [-_.a-zA-Z0-9], not beginning with - or .", id)
		}
		if (*t.bundles.Load())[id] != nil {
			return status.Errorf(codes.AlreadyExists, "Schema bundle %q already exists", id)
		}
		b, err := newBundle(t.name+bundlesPart+id, req.GetSchemaBundle())
		if err != nil {
			return err
		}
		if err := e.storeBundle(t, id, b); err != nil {
			return err
		}
		op, err = finished(proto.CloneOf(b.message), &adminpb.CreateSchemaBundleMetadata{
			Name: b.message.GetName(), StartTime: start, EndTime: timestamppb.New(e.clock()),
		})
		return err
	})
	return op, err
}

// storeBundle writes a bundle and then publishes it, or its removal if it is nil. The caller holds admin.
func (e *Engine) storeBundle(t *table, id string, b *bundle) error {
	batch := e.db.NewBatch()
	if err := saveBundle(batch, t, id, b); err != nil {
		return err
	}
	if err := e.commit(batch, span{}); err != nil {
		return err
	}
	next := maps.Clone(*t.bundles.Load())
	if next == nil {
		next = make(map[string]*bundle)
	}
	if b == nil {
		delete(next, id)
	} else {
		next[id] = b
	}
	t.bundles.Store(&next)
	return nil
}

func saveBundle(batch *pebble.Batch, t *table, id string, b *bundle) error {
	if b == nil {
		return batch.Delete(keyBundle(t.id, id), nil)
	}
	hash := fnv.New64a()
	_, _ = hash.Write(b.message.GetProtoSchema().GetProtoDescriptors())
	b.message.Etag = strconv.FormatUint(hash.Sum64(), 36)
	value, err := encodeBundle(b.message)
	if err != nil {
		return err
	}
	return batch.Set(keyBundle(t.id, id), value, nil)
}

// bundleByName finds a schema bundle by its full name.
func (e *Engine) bundleByName(name string) (t *table, id string, b *bundle, err error) {
	tableName, id, ok := strings.Cut(name, bundlesPart)
	if !ok {
		return nil, "", nil, invalidf("Schema bundle name %q: want projects/…/tables/…/schemaBundles/…", name)
	}
	if t, err = e.table(tableName); err != nil {
		return nil, "", nil, err
	}
	if b = (*t.bundles.Load())[id]; b == nil {
		return nil, "", nil, notFoundf("Schema bundle %q not found", name)
	}
	return t, id, b, nil
}

// GetSchemaBundle implements the service's method.
func (e *Engine) GetSchemaBundle(ctx context.Context, req *adminpb.GetSchemaBundleRequest) (*adminpb.SchemaBundle, error) {
	if err := e.enter(ctx); err != nil {
		return nil, statusOf(err)
	}
	defer e.leave()
	_, _, b, err := e.bundleByName(req.GetName())
	if err != nil {
		return nil, err
	}
	return proto.CloneOf(b.message), nil
}

// ListSchemaBundles implements the service's method. It returns names and etags. A page's token is the ID of its last
// bundle.
func (e *Engine) ListSchemaBundles(ctx context.Context, req *adminpb.ListSchemaBundlesRequest) (*adminpb.ListSchemaBundlesResponse, error) {
	if err := e.enter(ctx); err != nil {
		return nil, statusOf(err)
	}
	defer e.leave()
	t, err := e.table(req.GetParent())
	if err != nil {
		return nil, err
	}
	bundles := *t.bundles.Load()
	ids, next, err := page(sortedNames(bundles), req.GetPageSize(), req.GetPageToken())
	if err != nil {
		return nil, err
	}
	out := &adminpb.ListSchemaBundlesResponse{NextPageToken: next}
	for _, id := range ids {
		m := bundles[id].message
		out.SchemaBundles = append(out.SchemaBundles, &adminpb.SchemaBundle{Name: m.GetName(), Etag: m.GetEtag()})
	}
	return out, nil
}

// UpdateSchemaBundle implements the service's method. It replaces the descriptors.
func (e *Engine) UpdateSchemaBundle(ctx context.Context, req *adminpb.UpdateSchemaBundleRequest) (*longrunningpb.Operation, error) {
	start := timestamppb.New(e.clock())
	var op *longrunningpb.Operation
	err := e.change(ctx, func() error {
		t, id, old, err := e.bundleByName(req.GetSchemaBundle().GetName())
		if err != nil {
			return err
		}
		if err := checkEtag(req.GetSchemaBundle().GetEtag(), old); err != nil {
			return err
		}
		for _, p := range req.GetUpdateMask().GetPaths() {
			if p != "proto_schema" && p != "proto_schema.proto_descriptors" {
				return invalidf("Incorrect path %q in update_mask", p)
			}
		}
		b, err := newBundle(old.message.GetName(), req.GetSchemaBundle())
		if err != nil {
			return err
		}
		if !req.GetIgnoreWarnings() {
			if err := old.replacedBy(b); err != nil {
				return err
			}
		}
		if err := e.storeBundle(t, id, b); err != nil {
			return err
		}
		op, err = finished(proto.CloneOf(b.message), &adminpb.UpdateSchemaBundleMetadata{
			Name: b.message.GetName(), StartTime: start, EndTime: timestamppb.New(e.clock()),
		})
		return err
	})
	return op, err
}

func checkEtag(etag string, b *bundle) error {
	if etag != "" && etag != b.message.GetEtag() {
		return status.Errorf(codes.Aborted, "Etag %q does not match the schema bundle's", etag)
	}
	return nil
}

// DeleteSchemaBundle implements the service's method.
func (e *Engine) DeleteSchemaBundle(ctx context.Context, req *adminpb.DeleteSchemaBundleRequest) (*emptypb.Empty, error) {
	err := e.change(ctx, func() error {
		t, id, b, err := e.bundleByName(req.GetName())
		if err != nil {
			return err
		}
		if err := checkEtag(req.GetEtag(), b); err != nil {
			return err
		}
		return e.storeBundle(t, id, nil)
	})
	if err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}
