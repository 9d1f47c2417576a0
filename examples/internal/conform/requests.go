package conform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Where Bigtable documents what the cases look at.
const (
	dataAPI     = "https://docs.cloud.google.com/bigtable/docs/reference/data/rpc/google.bigtable.v2"
	adminAPI    = "https://docs.cloud.google.com/bigtable/docs/reference/admin/rpc/google.bigtable.admin.v2"
	quotas      = "https://docs.cloud.google.com/bigtable/quotas"
	aggregation = "https://docs.cloud.google.com/bigtable/docs/aggregates"
	viewPage    = "https://docs.cloud.google.com/bigtable/docs/authorized-views"
	readPage    = "https://docs.cloud.google.com/bigtable/docs/reads"
	writePage   = "https://docs.cloud.google.com/bigtable/docs/writes"
	errorPage   = "https://docs.cloud.google.com/bigtable/docs/status-codes"
	routing     = "https://docs.cloud.google.com/bigtable/docs/app-profiles"
	gcPage      = "https://docs.cloud.google.com/bigtable/docs/garbage-collection"
)

// code returns the name of an error's code. An error that says nothing about the claim is returned instead.
func code(err error) (string, error) {
	switch c := status.Code(err); c {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted, codes.ResourceExhausted, codes.Unauthenticated:
		return "", err
	default:
		return c.String(), nil
	}
}

func setCell(family, column string, micros int64, value []byte) *bigtablepb.Mutation {
	return &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_SetCell_{SetCell: &bigtablepb.Mutation_SetCell{
		FamilyName: family, ColumnQualifier: []byte(column), TimestampMicros: micros, Value: value,
	}}}
}

func set(value string) *bigtablepb.Mutation { return setCell(plain, "q", 1000, []byte(value)) }

func add(family string, n int64) *bigtablepb.Mutation {
	raw := func(s string) *bigtablepb.Value {
		return &bigtablepb.Value{Kind: &bigtablepb.Value_RawValue{RawValue: []byte(s)}}
	}
	return &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_AddToCell_{AddToCell: &bigtablepb.Mutation_AddToCell{
		FamilyName: family, ColumnQualifier: raw("n"),
		Timestamp: &bigtablepb.Value{Kind: &bigtablepb.Value_RawTimestampMicros{RawTimestampMicros: 1000}},
		Input:     &bigtablepb.Value{Kind: &bigtablepb.Value_IntValue{IntValue: n}},
	}}}
}

// addAll adds n in each family that aggregates.
func addAll(n int64) []*bigtablepb.Mutation {
	return []*bigtablepb.Mutation{add(sums, n), add(mins, n), add(maxs, n)}
}

// deleteRange deletes the cells of the column that add writes, at its timestamp.
func deleteRange(family string) *bigtablepb.Mutation { return deleteCells(family, "n", 1000, 2000) }

func deleteCells(family, column string, start, end int64) *bigtablepb.Mutation {
	return &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_DeleteFromColumn_{DeleteFromColumn: &bigtablepb.Mutation_DeleteFromColumn{
		FamilyName: family, ColumnQualifier: []byte(column), TimeRange: &bigtablepb.TimestampRange{StartTimestampMicros: start, EndTimestampMicros: end},
	}}}
}

func deleteFamily(family string) *bigtablepb.Mutation {
	return &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_DeleteFromFamily_{DeleteFromFamily: &bigtablepb.Mutation_DeleteFromFamily{FamilyName: family}}}
}

func token(s string, start time.Time) *bigtablepb.Idempotency {
	return &bigtablepb.Idempotency{Token: []byte(s), StartTime: timestamppb.New(start)}
}

// write writes a row of the case in one attempt.
func (e *env) write(row string, muts ...*bigtablepb.Mutation) error {
	return e.writeOnce(row, nil, muts...)
}

func (e *env) writeOnce(row string, i *bigtablepb.Idempotency, muts ...*bigtablepb.Mutation) error {
	return e.send(e.prefix+row, i, muts...)
}

// send writes a row by its whole key.
func (e *env) send(key string, i *bigtablepb.Idempotency, muts ...*bigtablepb.Mutation) error {
	_, err := e.data.MutateRow(e.at(), &bigtablepb.MutateRowRequest{
		TableName: e.path(e.table), AppProfileId: e.profile(), RowKey: []byte(key), Mutations: muts, Idempotency: i,
	})
	return err
}

// bulk writes entries in one request and returns their codes, in order.
func (e *env) bulk(entries ...*bigtablepb.MutateRowsRequest_Entry) ([]string, error) {
	return e.bulkIn(e.at(), entries...)
}

// bulkIn is bulk with the metadata of ctx. A response with advice that the SDK would not follow is an error.
func (e *env) bulkIn(ctx context.Context, entries ...*bigtablepb.MutateRowsRequest_Entry) ([]string, error) {
	for _, entry := range entries {
		entry.RowKey = []byte(e.prefix + string(entry.RowKey))
	}
	stream, err := e.data.MutateRows(ctx, &bigtablepb.MutateRowsRequest{TableName: e.path(e.table), AppProfileId: e.profile(), Entries: entries})
	if err != nil {
		return nil, err
	}
	out := make([]string, len(entries))
	for {
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if l := res.GetRateLimitInfo(); l != nil && !(l.GetFactor() > 0 && l.GetPeriod().AsDuration() > 0) {
			return nil, fmt.Errorf("the advice on the rate has factor %v and period %v", l.GetFactor(), l.GetPeriod().AsDuration())
		}
		for _, a := range res.Entries {
			out[a.Index] = codes.Code(a.GetStatus().GetCode()).String()
		}
	}
}

func entry(row string, i *bigtablepb.Idempotency, muts ...*bigtablepb.Mutation) *bigtablepb.MutateRowsRequest_Entry {
	return &bigtablepb.MutateRowsRequest_Entry{RowKey: []byte(row), Mutations: muts, Idempotency: i}
}

// conditional writes a row if a cell matches a predicate, and else otherwise. It returns whether one matched.
func (e *env) conditional(row string, predicate *bigtablepb.RowFilter, then, otherwise []*bigtablepb.Mutation) (bool, error) {
	res, err := e.data.CheckAndMutateRow(e.at(), &bigtablepb.CheckAndMutateRowRequest{
		TableName: e.path(e.table), AppProfileId: e.profile(), RowKey: []byte(e.prefix + row), PredicateFilter: predicate, TrueMutations: then, FalseMutations: otherwise,
	})
	return res.GetPredicateMatched(), err
}

func (e *env) profile() string {
	if e.o.ConditionalAppProfile != "" {
		return e.o.ConditionalAppProfile
	}
	return e.o.AppProfile
}

func (e *env) open() *bigtable.Table { return e.cond.Open(e.table) }

// row returns the newest cells of a row as "family:column=value", in order; numbers of families that aggregate as such.
func (e *env) row(row string) (string, error) {
	r, err := e.open().ReadRow(e.ctx, e.prefix+row, bigtable.RowFilter(bigtable.LatestNFilter(1)))
	if err != nil {
		return "", err
	}
	if r == nil {
		return "nothing", nil
	}
	var cells []string
	for _, family := range []string{plain, sums, mins, maxs} {
		for _, c := range r[family] {
			value := string(c.Value)
			if family != plain {
				value = fmt.Sprint(number(c.Value))
			}
			cells = append(cells, strings.TrimPrefix(c.Column, "c_")+"="+value)
		}
	}
	return strings.Join(cells, " "), nil
}

// number decodes the state of a cell that aggregates int64.
func number(b []byte) any {
	if len(b) != 8 {
		return fmt.Sprintf("%x", b)
	}
	n := uint64(0)
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return int64(n)
}

// keys returns the rows that a read visits, without the prefix of the case.
func (e *env) keys(rows bigtable.RowSet, opts ...bigtable.ReadOption) ([]string, error) {
	return e.keysOf(e.open(), rows, opts...)
}

func (e *env) keysOf(table bigtable.TableAPI, rows bigtable.RowSet, opts ...bigtable.ReadOption) (keys []string, err error) {
	err = table.ReadRows(e.ctx, rows, func(r bigtable.Row) bool {
		keys = append(keys, strings.TrimPrefix(r.Key(), e.prefix))
		return true
	}, opts...)
	return keys, err
}
