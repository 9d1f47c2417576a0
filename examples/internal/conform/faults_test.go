package conform_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/examples/internal/conform"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// proxy alters requests and answers on the connection.
type proxy struct {
	ask    func(req any)
	answer func(method string, reply any, err error) error
}

func (p proxy) dialOptions() []grpc.DialOption {
	if p.ask == nil {
		p.ask = func(any) {}
	}
	if p.answer == nil {
		p.answer = func(_ string, _ any, err error) error { return err }
	}
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			p.ask(req)
			return p.answer(path.Base(method), reply, invoker(ctx, method, req, reply, cc, opts...))
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := streamer(ctx, desc, cc, method, opts...)
			return &proxied{s, p, path.Base(method)}, err
		}),
	}
}

type proxied struct {
	grpc.ClientStream
	proxy
	method string
}

func (s *proxied) SendMsg(m any) error {
	s.ask(m)
	return s.ClientStream.SendMsg(m)
}

func (s *proxied) RecvMsg(m any) error { return s.answer(s.method, m, s.ClientStream.RecvMsg(m)) }

// mutations calls change with all mutations of a request.
func mutations(req any, change func(*bigtablepb.Mutation)) {
	var all []*bigtablepb.Mutation
	switch r := req.(type) {
	case *bigtablepb.MutateRowRequest:
		all = r.Mutations
	case *bigtablepb.MutateRowsRequest:
		for _, e := range r.Entries {
			all = append(all, e.Mutations...)
		}
	case *bigtablepb.CheckAndMutateRowRequest:
		all = slices.Concat(r.TrueMutations, r.FalseMutations)
	}
	for _, m := range all {
		change(m)
	}
}

// A service with one fault fails the cases that look at it, and passes others.
func TestFaultsAreFound(t *testing.T) {
	testkit.Plain(t)
	for name, f := range map[string]struct {
		proxy proxy
		found []string // some of the cases that must not be as expected
	}{
		"tokens are ignored": {proxy{ask: func(req any) {
			switch r := req.(type) {
			case *bigtablepb.MutateRowRequest:
				r.Idempotency = nil
			case *bigtablepb.MutateRowsRequest:
				for _, e := range r.Entries {
					e.Idempotency = nil
				}
			}
		}}, []string{"tokens/one row", "tokens/bulk", "tokens/too late", "tokens/short", "store/lost addition"}},
		"ranges have their end": {proxy{ask: func(req any) {
			r, ok := req.(*bigtablepb.ReadRowsRequest)
			for _, in := range r.GetRows().GetRowRanges() {
				if end, open := in.EndKey.(*bigtablepb.RowRange_EndKeyOpen); ok && open {
					in.EndKey = &bigtablepb.RowRange_EndKeyClosed{EndKeyClosed: end.EndKeyOpen}
				}
			}
		}}, []string{"keys/range", "keys/reversed"}},
		"conditions answer the opposite": {proxy{answer: func(_ string, reply any, err error) error {
			if r, ok := reply.(*bigtablepb.CheckAndMutateRowResponse); ok && err == nil {
				r.PredicateMatched = !r.PredicateMatched
			}
			return err
		}}, []string{"conditional/branches", "conditional/one winner"}},
		"views are not applied": {proxy{ask: func(req any) {
			table := func(view string) string { before, _, _ := strings.Cut(view, "/authorizedViews/"); return before }
			switch r := req.(type) {
			case *bigtablepb.ReadRowsRequest:
				if r.AuthorizedViewName != "" {
					r.TableName, r.AuthorizedViewName = table(r.AuthorizedViewName), ""
				}
			case *bigtablepb.MutateRowRequest:
				if r.AuthorizedViewName != "" {
					r.TableName, r.AuthorizedViewName = table(r.AuthorizedViewName), ""
				}
			}
		}}, []string{"views/read", "views/row outside", "views/write outside", "views/missing", "store/no view"}},
		"additions replace": {proxy{ask: func(req any) {
			mutations(req, func(m *bigtablepb.Mutation) {
				if a := m.GetAddToCell(); a != nil && a.GetFamilyName() == "c_sum" {
					a.Timestamp = &bigtablepb.Value{Kind: &bigtablepb.Value_RawTimestampMicros{RawTimestampMicros: clockMillis.Add(1) * 1000}}
				}
			})
		}}, []string{"aggregates/sum, min and max", "aggregates/in bulk"}},
		"unions are stored as intersections": {proxy{ask: func(req any) {
			r, ok := req.(*adminpb.ModifyColumnFamiliesRequest)
			for _, m := range r.GetModifications() {
				if u := m.GetCreate().GetGcRule().GetUnion(); ok && u != nil {
					m.GetCreate().GcRule = &adminpb.GcRule{Rule: &adminpb.GcRule_Intersection_{Intersection: &adminpb.GcRule_Intersection{Rules: u.Rules}}}
				}
			}
		}}, []string{"policies/stored"}},
		"NotFound is Internal": {proxy{answer: func(method string, _ any, err error) error {
			if status.Code(err) == codes.NotFound && method != "DeleteTable" {
				return status.Error(codes.Internal, "fault")
			}
			return err
		}}, []string{"outcomes/unknown family", "outcomes/missing table", "tables/missing"}},
		"timestamps are rounded": {proxy{ask: func(req any) {
			mutations(req, func(m *bigtablepb.Mutation) {
				if c := m.GetSetCell(); c.GetTimestampMicros() > 0 {
					c.TimestampMicros -= c.TimestampMicros % 1000
				}
			})
		}}, []string{"outcomes/fine timestamp"}},
	} {
		synctest.Test(t, func(t *testing.T) { // some faults make the SDK repeat until its timeouts
			r := run(t, conform.Options{Dial: server(t).Dial, DialOptions: f.proxy.dialOptions(), Quick: true})
			other := map[string]bool{}
			for _, c := range r.Unmet() {
				other[c.Name] = true
			}
			for _, c := range f.found {
				if !other[c] {
					t.Errorf("%s: %s is as expected", name, c)
				}
			}
			if len(other) > len(r.Results)/2 {
				t.Errorf("%s: %d of %d cases are not as expected, want those of the fault", name, len(other), len(r.Results))
			}
		})
	}
}

var clockMillis atomic.Int64

// tables returns the tables of an engine.
func tables(t *testing.T, s *local.Server) []string {
	t.Helper()
	conn, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := bigtable.NewAdminClient(t.Context(), "p", "i", option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	names, err := admin.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Ctrl-C in the middle removes the table; the report has the cases until then. A table that a killed run has left is
// found by the next one, and removed if that is wanted.
func TestScratchTable(t *testing.T) {
	s := server(t)
	// A table with a similar name is another program's.
	similar, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := bigtable.NewAdminClient(t.Context(), "p", "i", option.WithGRPCConn(similar))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	const mine = "tidemark-conform-20260101"
	if err := admin.CreateTable(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := conform.Options{Project: "p", Instance: "i", Dial: s.Dial, Quick: true}
	interrupted := o
	interrupted.Progress = func(done, total int, _ conform.Result) {
		if done == 5 {
			cancel()
		}
	}
	r, err := conform.Run(ctx, interrupted)
	if !errors.Is(err, context.Canceled) || len(r.Results) != 5 {
		t.Errorf("an interrupted run: %v", err)
	}
	if left := tables(t, s); !slices.Equal(left, []string{mine}) {
		t.Errorf("an interrupted run leaves %v", left)
	}
	killed := o
	killed.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if path.Base(method) == "DeleteTable" {
			return status.Error(codes.PermissionDenied, "no")
		}
		return invoker(ctx, method, req, reply, cc, opts...)
	})}
	r, err = conform.Run(t.Context(), killed)
	if err == nil || !strings.Contains(err.Error(), r.Table+", which still exists") {
		t.Errorf("a run that cannot remove its table: %v", err)
	}
	left := r.Table
	named := o
	named.Table = left
	if _, err := conform.Run(t.Context(), named); err == nil || !strings.Contains(err.Error(), "exists; a run makes its own table") {
		t.Errorf("a table that exists: %v", err)
	}
	o.RemoveLeftovers = true
	if r, err = conform.Run(t.Context(), o); err != nil || !slices.Equal(r.Leftovers, []string{left}) {
		t.Errorf("the next run finds %v, %v, want %s", r.Leftovers, err, left)
	}
	if still := tables(t, s); !slices.Equal(still, []string{mine}) {
		t.Errorf("the tables %v are left, want %s alone", still, mine)
	}
}

// What an instance or its rights lack is said.
func TestRefusals(t *testing.T) {
	testkit.Plain(t)
	s := server(t)
	refuse := func(code codes.Code, method string, match func(req any) bool) []grpc.DialOption {
		return []grpc.DialOption{grpc.WithChainUnaryInterceptor(func(ctx context.Context, called string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if path.Base(called) == method && match(req) {
				return status.Error(code, "refused by the test")
			}
			return invoker(ctx, called, req, reply, cc, opts...)
		})}
	}
	always := func(any) bool { return true }
	for _, tt := range []struct {
		o    conform.Options
		want string
	}{
		{conform.Options{}, "a project and an instance"},
		{conform.Options{Project: "p", Instance: "i", DialOptions: refuse(codes.PermissionDenied, "CreateTable", always)}, "bigtable.tables.create"},
		{conform.Options{Project: "p", Instance: "i", DialOptions: refuse(codes.PermissionDenied, "ListTables", always)}, "bigtable.tables.list"},
		{conform.Options{Project: "p", Instance: "i", DialOptions: refuse(codes.NotFound, "ListTables", always)}, "does not exist"},
	} {
		tt.o.Dial = s.Dial
		if _, err := conform.Run(t.Context(), tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	r := run(t, conform.Options{Dial: s.Dial, Quick: true, DialOptions: refuse(codes.Unimplemented, "ModifyColumnFamilies", func(req any) bool {
		mods := req.(*adminpb.ModifyColumnFamiliesRequest).Modifications
		return slices.ContainsFunc(mods, func(m *adminpb.ModifyColumnFamiliesRequest_Modification) bool {
			return m.GetCreate().GetValueType().GetAggregateType() != nil
		})
	})})
	for _, c := range r.Results {
		aggregates := strings.Contains(c.Seen, "refused families that aggregate")
		if strings.HasPrefix(c.Name, "tokens/") != aggregates && !aggregates {
			t.Errorf("%s without aggregates: %s %s", c.Name, c.Status, c.Seen)
		}
	}
}
