package bt

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// The guard sends an idempotency token with each addition, the same with each repetition of it. The service says that
// it applies a mutation with a token to aggregate families only once within 15 minutes:
// https://docs.cloud.google.com/bigtable/docs/reference/data/rpc/google.bigtable.v2#mutaterowrequest
const (
	// tokenLife bounds the repetitions of one addition, so that none arrives after those 15 minutes.
	tokenLife = 10 * time.Minute
	tokenLen  = 16
)

// Replays says how an addition may be repeated.
type Replays struct {
	// Start is the time of the first attempt, by the store's clock. The service refuses a mutation whose start is too
	// long ago.
	Start time.Time
	// Recognized reports whether the service recognizes a repeated token. It is called before an addition is repeated
	// whose response was lost. Nil means that it does not: then such an addition is not repeated.
	Recognized func(context.Context) bool
}

func (r *Replays) recognized(ctx context.Context) bool {
	return r.Recognized != nil && r.Recognized(ctx)
}

// newToken returns a token that no other mutation has.
func newToken(start time.Time) *btpb.Idempotency {
	token := make([]byte, tokenLen)
	_, _ = rand.Read(token) // never fails
	return &btpb.Idempotency{Token: token, StartTime: timestamppb.New(start)}
}

// RecognizesTokens adds 1 to a new row several times with the same token, reads the row and deletes it. It reports
// whether 1 was added once. An error means that this is not known.
func (t *Table) RecognizesTokens(ctx context.Context, key, family string, start time.Time) (bool, error) {
	token, mut, gone := newToken(start), bigtable.NewMutation(), bigtable.NewMutation()
	mut.AddIntToCell(family, "n", 0, 1)
	gone.DeleteRow()
	defer func() { t.SingleCluster().Apply(ctx, key, gone) }() // nobody reads what remains of it
	var pause pauser
	for stored := 0; stored < 2; {
		var rec record
		rec.token = token
		err := t.cond.Apply(withRecord(ctx, &rec), key, mut)
		switch {
		case !rec.seen:
			return false, unguarded(err).Err
		case rec.err == nil:
			stored++
		case !retryable(rec.err) || !pause.wait(ctx, rec.err):
			return false, ended(ctx, rec.err)
		}
	}
	row, err := t.RowAsJudged(ctx, key, bigtable.LatestNFilter(1))
	if err != nil {
		return false, err
	}
	if items := row.Family(family); len(items) == 1 && len(items[0].Value) == 8 {
		return binary.BigEndian.Uint64(items[0].Value) == 1, nil
	}
	return false, errors.New("tsdb: the row of a test of idempotency tokens does not hold a sum")
}
