package engine

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"github.com/cockroachdb/pebble/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// CreateAuthorizedView implements the service's method.
func (e *Engine) CreateAuthorizedView(ctx context.Context, req *adminpb.CreateAuthorizedViewRequest) (*longrunningpb.Operation, error) {
	start := timestamppb.New(e.clock())
	var op *longrunningpb.Operation
	err := e.change(ctx, func() error {
		t, err := e.table(req.GetParent())
		if err != nil {
			return err
		}
		id := req.GetAuthorizedViewId()
		if !tableID.MatchString(id) {
			return invalidf("Field authorized_view_id %q: want 1 to 50 of [-_.a-zA-Z0-9], not beginning with - or .", id)
		}
		if (*t.views.Load())[id] != nil {
			return status.Errorf(codes.AlreadyExists, "Authorized view %q already exists", id)
		}
		m := new(adminpb.AuthorizedView)
		if err := updateView(m, req.GetAuthorizedView(), nil); err != nil {
			return err
		}
		v, err := e.storeView(t, id, m)
		if err != nil {
			return err
		}
		op, err = finished(proto.CloneOf(v.message), &adminpb.CreateAuthorizedViewMetadata{
			RequestTime: start, FinishTime: timestamppb.New(e.clock()),
		})
		return err
	})
	return op, err
}

// storeView checks a view, writes it and then publishes it. The caller holds admin and must not use the message
// afterwards.
func (e *Engine) storeView(t *table, id string, m *adminpb.AuthorizedView) (*view, error) {
	subset := m.GetSubsetView()
	if subset == nil {
		return nil, invalidf("Authorized view %q: subset_view is not set", id)
	}
	families := t.schema.Load().families
	for name, f := range subset.GetFamilySubsets() {
		if families[name] == nil {
			return nil, unknownFamily(name)
		}
		for _, list := range [][][]byte{f.GetQualifiers(), f.GetQualifierPrefixes()} {
			for _, q := range list {
				if err := checkQualifier(q); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, p := range subset.GetRowPrefixes() {
		if len(p) > maxRowKey {
			return nil, invalidf("Row prefix has %d bytes, want at most %d", len(p), maxRowKey)
		}
	}
	m.Name, m.Etag = t.name+viewsPart+id, ""
	value, err := encodeView(m)
	if err != nil {
		return nil, err
	}
	hash := fnv.New64a()
	_, _ = hash.Write(value)
	m.Etag = strconv.FormatUint(hash.Sum64(), 36)
	if value, err = encodeView(m); err != nil {
		return nil, err
	}
	v := newView(m)
	b := e.db.NewBatch()
	if err := b.Set(keyView(t.id, id), value, nil); err != nil {
		return nil, err
	}
	return v, e.publishViews(t, b, func(views map[string]*view) { views[id] = v })
}

// publishViews makes a change durable and then visible. Before that, it waits for writes through the old views to end.
func (e *Engine) publishViews(t *table, b *pebble.Batch, change func(map[string]*view)) error {
	t.gate.Lock()
	defer t.gate.Unlock()
	if err := e.commit(b); err != nil {
		return err
	}
	next := maps.Clone(*t.views.Load())
	if next == nil {
		next = make(map[string]*view)
	}
	change(next)
	t.views.Store(&next)
	return nil
}

// GetAuthorizedView implements the service's method.
func (e *Engine) GetAuthorizedView(ctx context.Context, req *adminpb.GetAuthorizedViewRequest) (*adminpb.AuthorizedView, error) {
	if err := e.enter(ctx); err != nil {
		return nil, statusOf(err)
	}
	defer e.leave()
	_, v, err := e.viewByName(req.GetName())
	if err != nil {
		return nil, err
	}
	return v.show(req.GetView()), nil
}

// show returns the view as the admin API shows it. If the request names no part, it shows all, as the service does to
// the official client.
func (v *view) show(how adminpb.AuthorizedView_ResponseView) *adminpb.AuthorizedView {
	switch how {
	case adminpb.AuthorizedView_NAME_ONLY:
		return &adminpb.AuthorizedView{Name: v.message.GetName()}
	case adminpb.AuthorizedView_BASIC:
		return &adminpb.AuthorizedView{
			Name: v.message.GetName(), Etag: v.message.GetEtag(), DeletionProtection: v.message.GetDeletionProtection(),
		}
	}
	return proto.CloneOf(v.message)
}

// ListAuthorizedViews implements the service's method. A page's token is the ID of its last view.
func (e *Engine) ListAuthorizedViews(ctx context.Context, req *adminpb.ListAuthorizedViewsRequest) (*adminpb.ListAuthorizedViewsResponse, error) {
	if err := e.enter(ctx); err != nil {
		return nil, statusOf(err)
	}
	defer e.leave()
	t, err := e.table(req.GetParent())
	if err != nil {
		return nil, err
	}
	views := *t.views.Load()
	ids, next, err := page(sortedNames(views), req.GetPageSize(), req.GetPageToken())
	if err != nil {
		return nil, err
	}
	how := req.GetView()
	if how == adminpb.AuthorizedView_RESPONSE_VIEW_UNSPECIFIED {
		how = adminpb.AuthorizedView_NAME_ONLY
	}
	out := &adminpb.ListAuthorizedViewsResponse{NextPageToken: next}
	for _, id := range ids {
		out.AuthorizedViews = append(out.AuthorizedViews, views[id].show(how))
	}
	return out, nil
}

// UpdateAuthorizedView implements the service's method.
func (e *Engine) UpdateAuthorizedView(ctx context.Context, req *adminpb.UpdateAuthorizedViewRequest) (*longrunningpb.Operation, error) {
	start := timestamppb.New(e.clock())
	var op *longrunningpb.Operation
	err := e.change(ctx, func() error {
		t, old, err := e.viewByName(req.GetAuthorizedView().GetName())
		if err != nil {
			return err
		}
		if etag := req.GetAuthorizedView().GetEtag(); etag != "" && etag != old.message.GetEtag() {
			return status.Errorf(codes.Aborted, "Etag %q does not match the authorized view's", etag)
		}
		m := proto.CloneOf(old.message)
		if err := updateView(m, req.GetAuthorizedView(), req.GetUpdateMask().GetPaths()); err != nil {
			return err
		}
		v, err := e.storeView(t, old.id(), m)
		if err != nil {
			return err
		}
		op, err = finished(proto.CloneOf(v.message), &adminpb.UpdateAuthorizedViewMetadata{
			RequestTime: start, FinishTime: timestamppb.New(e.clock()),
		})
		return err
	})
	return op, err
}

// updateView copies the fields that a mask names, all for the mask *, and without a mask the fields that are set.
func updateView(dst, src *adminpb.AuthorizedView, paths []string) error {
	all := slices.Equal(paths, []string{"*"})
	if none := len(paths) == 0; none || all {
		paths = nil
		if all || src.GetDeletionProtection() {
			paths = append(paths, "deletion_protection")
		}
		if all || src.GetSubsetView() != nil {
			paths = append(paths, "subset_view")
		}
	}
	for _, p := range paths {
		subset := dst.GetSubsetView()
		switch p {
		case "deletion_protection":
			dst.DeletionProtection = src.GetDeletionProtection()
		case "subset_view":
			dst.AuthorizedView = nil
			if s := src.GetSubsetView(); s != nil {
				dst.AuthorizedView = &adminpb.AuthorizedView_SubsetView_{SubsetView: proto.CloneOf(s)}
			}
		case "subset_view.row_prefixes":
			if subset != nil {
				subset.RowPrefixes = proto.CloneOf(src).GetSubsetView().GetRowPrefixes()
			}
		case "subset_view.family_subsets":
			if subset != nil {
				subset.FamilySubsets = proto.CloneOf(src).GetSubsetView().GetFamilySubsets()
			}
		default:
			return invalidf("Incorrect path %q in update_mask", p)
		}
	}
	return nil
}

// DeleteAuthorizedView implements the service's method.
func (e *Engine) DeleteAuthorizedView(ctx context.Context, req *adminpb.DeleteAuthorizedViewRequest) (*emptypb.Empty, error) {
	err := e.change(ctx, func() error {
		t, v, err := e.viewByName(req.GetName())
		if err != nil {
			return err
		}
		if etag := req.GetEtag(); etag != "" && etag != v.message.GetEtag() {
			return status.Errorf(codes.Aborted, "Etag %q does not match the authorized view's", etag)
		}
		if v.message.GetDeletionProtection() {
			return status.Errorf(codes.FailedPrecondition, "Authorized view %q is protected from deletion", req.GetName())
		}
		b := e.db.NewBatch()
		if err := b.Delete(keyView(t.id, v.id()), nil); err != nil {
			return err
		}
		return e.publishViews(t, b, func(views map[string]*view) { delete(views, v.id()) })
	})
	if err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}
