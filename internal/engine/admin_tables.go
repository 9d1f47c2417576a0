package engine

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

var (
	parentName = regexp.MustCompile(`^projects/[^/]+/instances/[^/]+$`)
	tableID    = regexp.MustCompile(`^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,49}$`)
)

const (
	tablesPart   = "/tables/"
	maxSplits    = 100
	maxPageSize  = 1000
	protectedMsg = "Table %q is protected from deletion"
)

// CreateTable implements the service's method.
func (e *Engine) CreateTable(ctx context.Context, req *adminpb.CreateTableRequest) (*adminpb.Table, error) {
	var out *adminpb.Table
	err := e.change(ctx, func() error {
		t, s, err := e.newTable(req)
		if err != nil {
			return err
		}
		b := e.db.NewBatch()
		if err := saveTable(b, t, s); err != nil {
			return err
		}
		if err := saveNextTable(b, t.id+1); err != nil {
			return err
		}
		if err := e.commit(b); err != nil {
			return err
		}
		e.nextTable = t.id + 1
		e.setTable(t.name, t)
		out = t.message(adminpb.Table_SCHEMA_VIEW)
		return nil
	})
	return out, err
}

// change runs a change of tables, one at a time.
func (e *Engine) change(ctx context.Context, fn func() error) error {
	if err := e.enterWrite(ctx); err != nil {
		return statusOf(err)
	}
	defer e.leave()
	e.admin.Lock()
	defer e.admin.Unlock()
	return statusOf(fn())
}

// newTable checks a request and makes the requested table.
func (e *Engine) newTable(req *adminpb.CreateTableRequest) (*table, *schema, error) {
	if !parentName.MatchString(req.GetParent()) {
		return nil, nil, invalidf("Parent %q: want projects/{project}/instances/{instance}", req.GetParent())
	}
	if !tableID.MatchString(req.GetTableId()) {
		return nil, nil, invalidf("Field table_id %q: want 1 to 50 of [-_.a-zA-Z0-9], not beginning with - or .", req.GetTableId())
	}
	name := req.GetParent() + tablesPart + req.GetTableId()
	if (*e.tables.Load())[name] != nil {
		return nil, nil, status.Errorf(codes.AlreadyExists, "Table %q already exists", name)
	}
	if err := checkTableMessage(req.GetTable()); err != nil {
		return nil, nil, err
	}
	if e.nextTable >= maxTables {
		return nil, nil, status.Error(codes.ResourceExhausted, "The store has no numbers for tables left")
	}
	s := newSchema(req.GetTable().GetGranularity())
	s, err := s.withSettings(req.GetTable(), nil)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range sortedNames(req.GetTable().GetColumnFamilies()) {
		if err := s.create(id, req.GetTable().GetColumnFamilies()[id]); err != nil {
			return nil, nil, err
		}
	}
	if n := len(req.GetInitialSplits()); n > maxSplits {
		return nil, nil, invalidf("Field initial_splits has %d keys, want at most %d", n, maxSplits)
	}
	for _, split := range req.GetInitialSplits() {
		if err := checkRowKey(split.GetKey()); err != nil {
			return nil, nil, err
		}
		s.splits = append(s.splits, slices.Clone(split.GetKey()))
	}
	t := &table{id: e.nextTable, name: name}
	t.schema.Store(s)
	t.views.Store(new(map[string]*view))
	return t, s, nil
}

// checkTableMessage refuses features of a new table that the engine lacks.
func checkTableMessage(t *adminpb.Table) error {
	switch t.GetGranularity() {
	case adminpb.Table_TIMESTAMP_GRANULARITY_UNSPECIFIED, adminpb.Table_MILLIS, adminpb.Table_MICROS:
	default:
		return invalidf("Unknown timestamp granularity %v", t.GetGranularity())
	}
	switch {
	case t.GetAutomatedBackupPolicy() != nil:
		return unimplementedf("Automated backups are not offered")
	case t.GetRowKeySchema() != nil:
		return unimplementedf("Row key schemas are not offered")
	}
	return nil
}

// ListTables implements the service's method. A page's token is the last name on it.
func (e *Engine) ListTables(ctx context.Context, req *adminpb.ListTablesRequest) (*adminpb.ListTablesResponse, error) {
	if err := e.enter(ctx); err != nil {
		return nil, statusOf(err)
	}
	defer e.leave()
	if !parentName.MatchString(req.GetParent()) {
		return nil, invalidf("Parent %q: want projects/{project}/instances/{instance}", req.GetParent())
	}
	tables := *e.tables.Load()
	prefix := req.GetParent() + tablesPart
	names := slices.DeleteFunc(sortedNames(tables), func(n string) bool { return !strings.HasPrefix(n, prefix) })
	names, next, err := page(names, req.GetPageSize(), req.GetPageToken())
	if err != nil {
		return nil, err
	}
	view := req.GetView()
	if view == adminpb.Table_VIEW_UNSPECIFIED {
		view = adminpb.Table_NAME_ONLY
	}
	out := &adminpb.ListTablesResponse{NextPageToken: next}
	for _, n := range names {
		out.Tables = append(out.Tables, tables[n].message(view))
	}
	return out, nil
}

// page cuts one page out of sorted names.
func page(names []string, size int32, token string) (out []string, next string, err error) {
	if size < 0 {
		return nil, "", invalidf("Field page_size is %d, want 0 or more", size)
	}
	if size == 0 || size > maxPageSize {
		size = maxPageSize
	}
	if token != "" {
		i, found := slices.BinarySearch(names, token)
		if found {
			i++
		}
		names = names[i:]
	}
	if len(names) <= int(size) {
		return names, "", nil
	}
	return names[:size], names[size-1], nil
}

// GetTable implements the service's method.
func (e *Engine) GetTable(ctx context.Context, req *adminpb.GetTableRequest) (*adminpb.Table, error) {
	if err := e.enter(ctx); err != nil {
		return nil, statusOf(err)
	}
	defer e.leave()
	t, err := e.table(req.GetName())
	if err != nil {
		return nil, err
	}
	return t.message(req.GetView()), nil
}

// UpdateTable implements the service's method. It updates deletion protection, tiered storage and the change stream.
func (e *Engine) UpdateTable(ctx context.Context, req *adminpb.UpdateTableRequest) (*longrunningpb.Operation, error) {
	start := timestamppb.New(e.clock())
	var op *longrunningpb.Operation
	err := e.change(ctx, func() error {
		paths := req.GetUpdateMask().GetPaths()
		if len(paths) == 0 {
			return invalidf("Field update_mask is required")
		}
		if !req.GetUpdateMask().IsValid(req.GetTable()) {
			return invalidf("Incorrect path in update_mask %v", paths)
		}
		t, err := e.table(req.GetTable().GetName())
		if err != nil {
			return err
		}
		s, err := t.schema.Load().withSettings(req.GetTable(), paths)
		if err != nil {
			return err
		}
		if err := e.storeSchema(t, s); err != nil {
			return err
		}
		op, err = finished(t.message(adminpb.Table_SCHEMA_VIEW), &adminpb.UpdateTableMetadata{
			Name: t.name, StartTime: start, EndTime: timestamppb.New(e.clock()),
		})
		return err
	})
	return op, err
}

// storeSchema writes and then publishes a table's new schema. The caller holds admin.
func (e *Engine) storeSchema(t *table, s *schema) error {
	b := e.db.NewBatch()
	if err := saveTable(b, t, s); err != nil {
		return err
	}
	// A write that was checked against the old schema must not be applied after the change.
	t.gate.Lock()
	defer t.gate.Unlock()
	if err := e.commit(b); err != nil {
		return err
	}
	e.first.forgetAll(func() { t.schema.Store(s) })
	return nil
}

// finished returns a completed long-running operation with its result.
func finished(result, about proto.Message) (*longrunningpb.Operation, error) {
	response, err := anypb.New(result)
	if err != nil {
		return nil, fmt.Errorf("engine: packing a result: %w", err)
	}
	md, err := anypb.New(about)
	if err != nil {
		return nil, fmt.Errorf("engine: packing a result: %w", err)
	}
	return &longrunningpb.Operation{
		Name: "operations/done", Done: true, Metadata: md,
		Result: &longrunningpb.Operation_Response{Response: response},
	}, nil
}

// DeleteTable implements the service's method. One batch deletes the rows and the table.
func (e *Engine) DeleteTable(ctx context.Context, req *adminpb.DeleteTableRequest) (*emptypb.Empty, error) {
	err := e.change(ctx, func() error {
		t, err := e.table(req.GetName())
		if err != nil {
			return err
		}
		if t.schema.Load().protected {
			return status.Errorf(codes.FailedPrecondition, protectedMsg, t.name)
		}
		for id, v := range *t.views.Load() {
			if v.message.GetDeletionProtection() {
				return status.Errorf(codes.FailedPrecondition, "Authorized view %q is protected from deletion", id)
			}
		}
		b := e.db.NewBatch()
		if err := b.Delete(keyTable(t.name), nil); err != nil {
			return err
		}
		if err := b.DeleteRange(keyViews(t.id), rowfilter.PrefixEnd(keyViews(t.id)), nil); err != nil {
			return err
		}
		if err := b.DeleteRange(keyBundles(t.id), rowfilter.PrefixEnd(keyBundles(t.id)), nil); err != nil {
			return err
		}
		lower, upper := tableRange(t.id)
		if err := b.DeleteRange(lower, upper, nil); err != nil {
			return err
		}
		t.gate.Lock()
		defer t.gate.Unlock()
		if err := e.commit(b); err != nil {
			return err
		}
		t.dropped = true
		e.setTable(t.name, nil)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}
