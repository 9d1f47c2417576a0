package crash

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/engine/inproc"
)

// connect returns a client of an engine, and creates the table if it does not exist.
func connect(ctx context.Context, eng *engine.Engine) (*bigtable.Table, func(), error) {
	conn, err := inproc.Dial(eng, grpc.WithChainUnaryInterceptor(stamp))
	if err != nil {
		return nil, nil, err
	}
	admin, err := bigtable.NewAdminClient(ctx, "p", "i", option.WithGRPCConn(conn))
	if err != nil {
		return nil, nil, err
	}
	err = admin.CreateTableFromConf(ctx, &bigtable.TableConf{TableID: "t", ColumnFamilies: map[string]bigtable.Family{
		"f":   {GCPolicy: bigtable.MaxVersionsPolicy(1)},
		"sum": {ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: bigtable.SumAggregator{}}},
	}})
	if err != nil && status.Code(err) != codes.AlreadyExists {
		return nil, nil, err
	}
	client, err := bigtable.NewClientWithConfig(ctx, "p", "i", bigtable.ClientConfig{
		MetricsProvider: bigtable.NoopMetricsProvider{}, DisableSession: true,
	}, option.WithGRPCConn(conn))
	if err != nil {
		return nil, nil, err
	}
	return client.Open("t"), func() { client.Close(); admin.Close(); conn.Close() }, nil
}

// addition is an addition to a row's sum, with the token and the time in microseconds of its first attempt.
type addition struct {
	key, token string
	start      int64
}

// apply makes the addition. The official client has no tokens, so stamp sets them.
func (a addition) apply(ctx context.Context, tbl *bigtable.Table) error {
	m := bigtable.NewMutation()
	m.AddIntToCell("sum", "n", 0, 1)
	return tbl.Apply(context.WithValue(ctx, addition{}, a), a.key, m)
}

func stamp(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if a, ok := ctx.Value(addition{}).(addition); ok {
		req.(*bigtablepb.MutateRowRequest).Idempotency = &bigtablepb.Idempotency{Token: []byte(a.token), StartTime: timestamppb.New(time.UnixMicro(a.start))}
	}
	return invoker(ctx, method, req, reply, cc, opts...)
}

// cells returns a row that shows whether it is complete: its version, two values that follow from the version, and a
// checksum.
func cells(version uint64, key string) *bigtable.Mutation {
	v := binary.BigEndian.AppendUint64(nil, version)
	r := rand.New(rand.NewPCG(version, uint64(crc32.ChecksumIEEE([]byte(key)))))
	a, b := filler(r), filler(r)
	m := bigtable.NewMutation()
	m.DeleteCellsInFamily("f")
	at := bigtable.Timestamp(version * 1000)
	m.Set("f", "v", at, v)
	m.Set("f", "a", at, a)
	m.Set("f", "b", at, b)
	m.Set("f", "crc", at, binary.BigEndian.AppendUint32(nil, checksum(key, v, a, b)))
	return m
}

func filler(r *rand.Rand) []byte {
	out := make([]byte, r.IntN(300))
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

func checksum(key string, parts ...[]byte) uint32 {
	sum := crc32.ChecksumIEEE([]byte(key))
	for _, p := range parts {
		sum = crc32.Update(sum, crc32.IEEETable, binary.BigEndian.AppendUint32(nil, uint32(len(p))))
		sum = crc32.Update(sum, crc32.IEEETable, p)
	}
	return sum
}

// version returns the version of a row that cells made, or an error if the row is incomplete.
func version(r bigtable.Row) (uint64, error) {
	got := map[string][]byte{}
	for _, c := range r["f"] {
		if _, twice := got[c.Column]; twice {
			return 0, fmt.Errorf("row %q: got two cells of %s", r.Key(), c.Column)
		}
		got[c.Column] = c.Value
	}
	crc := got["f:crc"]
	if len(got) != 4 || len(crc) != 4 || len(got["f:v"]) != 8 ||
		binary.BigEndian.Uint32(crc) != checksum(r.Key(), got["f:v"], got["f:a"], got["f:b"]) {
		return 0, fmt.Errorf("row %q: got only %d cells", r.Key(), len(got))
	}
	return binary.BigEndian.Uint64(got["f:v"]), nil
}

// write writes until its context ends or a write fails. It reports each write before it starts ("try …") and when it is
// acknowledged. start separates the rows of different runs.
func write(ctx context.Context, tbl *bigtable.Table, start uint64, report func(format string, args ...any)) error {
	jobs := []func(n uint64) error{
		func(n uint64) error { // a new row each time
			key := fmt.Sprintf("put/%d", n)
			err := tbl.Apply(ctx, key, cells(n, key))
			if err == nil {
				report("row %s %d", key, n)
			}
			return err
		},
		func(n uint64) error { // the same few rows repeatedly
			key := fmt.Sprintf("over/%d", n%3)
			report("try row %s %d", key, n)
			err := tbl.Apply(ctx, key, cells(n, key))
			if err == nil {
				report("row %s %d", key, n)
			}
			return err
		},
		func(n uint64) error { // many rows at once
			var keys []string
			var muts []*bigtable.Mutation
			for i := range 40 {
				key := fmt.Sprintf("bulk/%d/%d", n, i)
				keys, muts = append(keys, key), append(muts, cells(n, key))
			}
			errs, err := tbl.ApplyBulk(ctx, keys, muts)
			if err == nil && errs == nil {
				report("bulk %d %d", n, len(keys))
			}
			return err
		},
		func(n uint64) error { // rows that are written and deleted
			key := fmt.Sprintf("gone/%d", n)
			if err := tbl.Apply(ctx, key, cells(n, key)); err != nil {
				return err
			}
			report("try gone %s", key)
			m := bigtable.NewMutation()
			m.DeleteRow()
			err := tbl.Apply(ctx, key, m)
			if err == nil {
				report("gone %s", key)
			}
			return err
		},
		add(ctx, tbl, "one", report), add(ctx, tbl, "two", report),
		insert(ctx, tbl, "one", report), insert(ctx, tbl, "two", report),
	}
	var wg sync.WaitGroup
	failed := make(chan error, len(jobs))
	for _, job := range jobs {
		wg.Go(func() {
			for n := start; ctx.Err() == nil; n++ {
				if err := job(n); err != nil && ctx.Err() == nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	return <-failed
}

// add adds to sums.
func add(ctx context.Context, tbl *bigtable.Table, who string, report func(string, ...any)) func(uint64) error {
	return func(n uint64) error {
		a := addition{fmt.Sprintf("count/%d", n%4), fmt.Sprintf("token-%s-%d", who, n), time.Now().UnixMicro()}
		report("try add %s %s %d", a.key, a.token, a.start)
		err := a.apply(ctx, tbl)
		if err == nil {
			report("add %s", a.key)
		}
		return err
	}
}

// insert writes a row if it does not exist. Both writers try the same rows.
func insert(ctx context.Context, tbl *bigtable.Table, who string, report func(string, ...any)) func(uint64) error {
	return func(n uint64) error {
		key := fmt.Sprintf("first/%d", n)
		m := bigtable.NewMutation()
		m.Set("f", "who", 1000, []byte(who))
		m.Set("f", "again", 1000, []byte(who))
		var there bool
		err := tbl.Apply(ctx, key, bigtable.NewCondMutation(bigtable.PassAllFilter(), nil, m), bigtable.GetCondMutationResult(&there))
		if err == nil && !there {
			report("first %s %s", key, who)
		}
		return err
	}
}

// ledger holds the acknowledged writes, and those that were tried.
type ledger struct {
	rows  map[string]uint64 // acknowledged version
	maybe map[string]uint64 // newest version that was tried
	gone  map[string]bool   // acknowledged deletions
	going map[string]bool   // deletions that were tried
	added map[string]int64
	tried map[string]int64
	first map[string]string
	again []addition // additions that were tried, until replay
	lines int
}

func newLedger() *ledger {
	return &ledger{
		rows: map[string]uint64{}, maybe: map[string]uint64{}, gone: map[string]bool{}, going: map[string]bool{},
		added: map[string]int64{}, tried: map[string]int64{}, first: map[string]string{},
	}
}

// enter records one line of a report.
func (l *ledger) enter(line string) error {
	var key, who string
	var n uint64
	var many int
	var at int64
	scan := func(format string, to ...any) bool {
		_, err := fmt.Sscanf(line, format, to...)
		return err == nil
	}
	switch {
	case scan("try row %s %d", &key, &n):
		l.maybe[key] = max(l.maybe[key], n)
	case scan("row %s %d", &key, &n):
		l.rows[key] = max(l.rows[key], n)
	case scan("bulk %d %d", &n, &many):
		for i := range many {
			l.rows[fmt.Sprintf("bulk/%d/%d", n, i)] = n
		}
	case scan("try gone %s", &key):
		l.going[key] = true
	case scan("gone %s", &key):
		l.gone[key] = true
	case scan("try add %s %s %d", &key, &who, &at):
		l.tried[key]++
		l.again = append(l.again, addition{key, who, at})
	case scan("add %s", &key):
		l.added[key]++
	case scan("first %s %s", &key, &who):
		if other, twice := l.first[key]; twice {
			return fmt.Errorf("row %s was inserted twice, by %s and by %s", key, other, who)
		}
		l.first[key] = who
	default:
		return fmt.Errorf("invalid report line %q", line)
	}
	l.lines++
	return nil
}

// replay makes all additions again that were tried since the last replay. Their tokens say which of them were applied,
// so that afterwards each counts once.
func (l *ledger) replay(t *testing.T, ctx context.Context, tbl *bigtable.Table) {
	t.Helper()
	for _, a := range l.again {
		if err := a.apply(ctx, tbl); err != nil {
			t.Fatalf("repeating the addition %s: %v", a.token, err)
		}
	}
	l.again = nil
	for key, n := range l.tried {
		l.added[key] = n
	}
}

// check compares the stored rows with the acknowledged writes.
func (l *ledger) check(t *testing.T, ctx context.Context, tbl *bigtable.Table) {
	t.Helper()
	seen := map[string]bool{}
	err := tbl.ReadRows(ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		key := r.Key()
		seen[key] = true
		if l.gone[key] {
			t.Errorf("row %s exists although its deletion was acknowledged", key)
		}
		if sum := r["sum"]; sum != nil {
			if got := int64(binary.BigEndian.Uint64(sum[0].Value)); got < l.added[key] || got > l.tried[key] {
				t.Errorf("sum %s: got %d, with %d acknowledged additions and %d tried ones", key, got, l.added[key], l.tried[key])
			}
			return true
		}
		if len(key) > 6 && key[:6] == "first/" {
			if f := r["f"]; len(f) != 2 || string(f[0].Value) != string(f[1].Value) {
				t.Errorf("row %s: got only a part of it", key)
			} else if who := l.first[key]; who != "" && who != string(f[0].Value) {
				t.Errorf("row %s: got the one by %s, but the insert by %s was acknowledged", key, f[0].Value, who)
			}
			return true
		}
		v, err := version(r)
		if err != nil {
			t.Error(err)
		}
		if v < l.rows[key] || l.maybe[key] > 0 && v > l.maybe[key] {
			t.Errorf("row %s: got version %d, with %d acknowledged and %d tried", key, v, l.rows[key], l.maybe[key])
		}
		return true
	})
	if err != nil {
		t.Errorf("reading the rows: %v", err)
		return
	}
	for key := range l.rows {
		if !seen[key] && !l.going[key] {
			t.Errorf("row %s was acknowledged and is missing", key)
		}
	}
	for key := range l.added {
		if !seen[key] {
			t.Errorf("sum %s was acknowledged and is missing", key)
		}
	}
	for key := range l.first {
		if !seen[key] {
			t.Errorf("row %s was acknowledged as inserted and is missing", key)
		}
	}
}
