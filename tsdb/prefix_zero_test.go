package tsdb_test

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"testing"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// pairs runs a sequence to its end. It returns the number of its pairs, and the last error.
func pairs[P any](seq iter.Seq2[P, error]) (n int, last error) {
	for _, err := range seq {
		n, last = n+1, err
	}
	return n, last
}

// one returns the error of a call that returns once.
func one[P any](_ P, err error) (int, error) { return 1, err }

// TestPrefixReaderOfNothing: each call of a reader without a repository or a prefix returns ErrInvalid once, and sends
// nothing.
func TestPrefixReaderOfNothing(t *testing.T) {
	repo, conn := fleetOf(t, 1, 1, tsdbtest.Options{})
	type reader = tsdb.PrefixReader[int64]
	calls := map[string]func(context.Context, reader) (int, error){
		"Latest":  func(ctx context.Context, u reader) (int, error) { return pairs(u.Latest(ctx)) },
		"LatestN": func(ctx context.Context, u reader) (int, error) { return pairs(u.LatestN(ctx, 1)) },
		"LatestFields": func(ctx context.Context, u reader) (int, error) {
			return pairs(u.LatestFields(ctx, tsdb.FieldOptions{}))
		},
		"PageLatest": func(ctx context.Context, u reader) (int, error) { return one(u.PageLatest(ctx, 1, "")) },
		"Range": func(ctx context.Context, u reader) (int, error) {
			return pairs(u.Range(ctx, tsdb.AllTime(), tsdb.Limit(0)))
		},
		"Merged": func(ctx context.Context, u reader) (int, error) {
			return pairs(u.Merged(ctx, tsdb.AllTime(), tsdb.Limit(0)))
		},
		"Page": func(ctx context.Context, u reader) (int, error) { return one(u.Page(ctx, tsdb.AllTime(), 1, "")) },
		"Entities": func(ctx context.Context, u reader) (int, error) {
			return pairs(u.Entities(ctx, tsdb.Between(start, start)))
		},
		"PageEntities": func(ctx context.Context, u reader) (int, error) { return one(u.PageEntities(ctx, 1, "")) },
		"Children":     func(ctx context.Context, u reader) (int, error) { return pairs(u.Children(ctx)) },
		"Silent":       func(ctx context.Context, u reader) (int, error) { return one(u.Silent(ctx, start, 1)) },
		"Follow":       func(ctx context.Context, u reader) (int, error) { return one(u.Follow(ctx, tsdb.FollowOptions{})) },
	}
	if n := reflect.TypeFor[reader]().NumMethod(); n != len(calls) {
		t.Errorf("%d of %d methods are tested", len(calls), n)
	}
	var none *tsdb.Repository[int64]
	for what, u := range map[string]reader{
		"the zero value": {}, "a nil repository": none.Under(tsdb.AllEntities()), "the zero repository": new(tsdb.Repository[int64]).Under(tsdb.AllEntities()),
		"the zero prefix": repo.Under(tsdb.Prefix{}), "a prefix of no parts": repo.Under(tsdb.NewPrefix()),
		"a prefix of an empty part": repo.Under(tsdb.NewPrefix("")), "a whole entity": repo.Under(tsdb.NewPrefix("berlin", "d0")),
	} {
		for name, call := range calls {
			for _, ctx := range []context.Context{nil, t.Context()} {
				if n, err := call(ctx, u); n != 1 || !errors.Is(err, tsdb.ErrInvalid) {
					t.Errorf("%s of %s: %d results, %v, want ErrInvalid once", name, what, n, err)
				}
			}
		}
	}
	if calls := conn.Counts().Calls; len(calls) > 0 {
		t.Errorf("requests were sent: %v", calls)
	}
}

// TestLimitsUnderAPrefix: a Limit of 0 reads nothing, and with a small one the service returns few points more.
func TestLimitsUnderAPrefix(t *testing.T) {
	repo, conn := fleetOf(t, 8, 1000, tsdbtest.Options{})
	for name, read := range map[string]func(tsdb.Limit) iter.Seq2[tsdb.Point[int64], error]{
		"Range": func(l tsdb.Limit) iter.Seq2[tsdb.Point[int64], error] {
			return repo.Under(tsdb.AllEntities()).Range(t.Context(), tsdb.AllTime(), l)
		},
		"Merged": func(l tsdb.Limit) iter.Seq2[tsdb.Point[int64], error] {
			return repo.Under(tsdb.AllEntities()).Merged(t.Context(), tsdb.AllTime(), l)
		},
	} {
		for limit, most := range map[tsdb.Limit]int64{0: 0, 10: 2500} {
			conn.Reset()
			n, err := pairs(read(limit))
			if err != nil || n != int(limit) {
				t.Errorf("%s with a Limit of %d: %d points, %v", name, limit, n, err)
			}
			if rows := conn.Counts().RowsReturned; rows > most {
				t.Errorf("%s with a Limit of %d: the service returns %d rows, want at most %d", name, limit, rows, most)
			}
		}
	}
}
