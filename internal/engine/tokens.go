package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A mutation that adds to aggregate cells may carry an idempotency token. Its row then remembers the token for at least
// tokenWindow, and a mutation with the same token is answered without being applied. The token is stored in the same
// batch as the cells, so neither is there without the other, also after a crash:
//
//	0x02 | period (8) | hash of table, row key and token (16)
//
// The value is empty. The period is the number of the tokenWindow since 1970 in which the first attempt was sent, or in
// which the mutation arrived if the client does not say when that was. So a token is looked up with one or three point
// reads, no memory grows with the number of tokens, and a whole period is deleted at once. No number of tokens makes
// the engine forget one early.
const (
	spaceToken  = 0x02
	tokenWindow = 15 * time.Minute
	minToken    = 8
)

// token is the checked idempotency of a mutation with additions. The zero value is none.
type token struct {
	hash  [16]byte
	start int64 // when the first attempt was sent, in microseconds since 1970; 0 if the client does not say
	set   bool
}

// tokenOf checks the idempotency of a mutation. Only additions need a token: other mutations may be repeated.
func (e *Engine) tokenOf(table uint32, rowKey []byte, muts []*bigtablepb.Mutation, i *bigtablepb.Idempotency) (token, error) {
	if i == nil {
		return token{}, nil
	}
	if len(i.GetToken()) < minToken {
		return token{}, invalidf("Idempotency token has %d bytes, want at least %d", len(i.GetToken()), minToken)
	}
	t := token{set: adds(muts)}
	if at := i.GetStartTime(); at.GetSeconds() != 0 || at.GetNanos() != 0 {
		if at.CheckValid() != nil {
			return token{}, invalidf("Idempotency start_time is not a valid time")
		}
		start, now := at.AsTime(), e.clock()
		if age := now.Sub(start); age > tokenWindow || age < -tokenWindow {
			return token{}, tooLate(start)
		}
		t.start = start.UnixMicro()
	}
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint32(nil, table))
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(rowKey))))
	h.Write(rowKey)
	h.Write(i.GetToken())
	copy(t.hash[:], h.Sum(nil))
	return t, nil
}

func tooLate(start time.Time) error {
	return status.Errorf(codes.FailedPrecondition, "Idempotency start_time %s is outside of the %v for which replays are recognized",
		start.UTC().Format(time.RFC3339Nano), tokenWindow)
}

func adds(muts []*bigtablepb.Mutation) bool {
	for _, m := range muts {
		switch m.GetMutation().(type) {
		case *bigtablepb.Mutation_AddToCell_, *bigtablepb.Mutation_MergeToCell_:
			return true
		}
	}
	return false
}

func tokenPeriod(micros int64) uint64 { return uint64(max(micros, 0) / tokenWindow.Microseconds()) }

func keyToken(period uint64, hash [16]byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{spaceToken}, period), hash[:]...)
}

// replay reports whether the token's mutation was applied before. If not, the batch remembers the token. The caller
// holds the row's lock exclusively.
func (e *Engine) replay(b *pebble.Batch, t token) (bool, error) {
	if !t.set {
		return false, nil
	}
	now := e.micros()
	period := tokenPeriod(t.start)
	first, last := period, period
	if t.start == 0 {
		period = tokenPeriod(now)
		first, last = max(period, 1)-1, period+1 // the clock may have been set back
	}
	for p := first; p <= last; p++ {
		_, closer, err := b.Get(keyToken(p, t.hash))
		switch {
		case err == nil:
			return true, closer.Close()
		case !errors.Is(err, pebble.ErrNotFound):
			return false, err
		}
	}
	// After the lookup: tokens that are forgotten in between were forgotten before this check.
	if t.start != 0 && period < e.forgotten.Load() {
		return false, tooLate(time.UnixMicro(t.start))
	}
	return false, b.Set(keyToken(period, t.hash), nil, nil)
}

// forgetTokens deletes the tokens of the periods that ended tokenWindow ago. From then on the engine refuses mutations
// that were first sent in such a period, even if the clock is set back. While the clock is not trusted, it deletes
// nothing. The caller has called enterWrite.
func (e *Engine) forgetTokens() {
	before := tokenPeriod(e.micros() - tokenWindow.Microseconds())
	known := e.forgotten.Load()
	if before <= known {
		return
	}
	if _, err := e.watch.Now(); err != nil || !e.forgotten.CompareAndSwap(known, before) {
		return
	}
	b := e.db.NewBatch()
	err := b.Set(keyForgotten(), binary.BigEndian.AppendUint64(nil, before), nil)
	if err == nil {
		err = b.DeleteRange([]byte{spaceToken}, keyToken(before, [16]byte{}), nil)
	}
	if err == nil {
		err = e.applyLazily(b)
	}
	if err != nil { // the next period is deleted with this one
		e.log.Error("forgetting idempotency tokens", "error", err)
	}
}

// loadForgotten reads up to which period the folder's tokens are forgotten.
func (e *Engine) loadForgotten() error {
	before, _, err := readNumber(e.db, keyForgotten(), 8, "record of forgotten tokens")
	e.forgotten.Store(before)
	return err
}
