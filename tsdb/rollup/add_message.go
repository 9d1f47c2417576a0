package rollup

import (
	"context"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/tsdb"
)

// MessageAdder adds events that bring an identity of their own to a rollup of mode ByMessage. Messages makes one. It holds
// no resources and is safe for concurrent use.
type MessageAdder[T any] struct{ adder[T] }

// Messages returns what adds events to a rollup of mode ByMessage for the tenant of a repository. It does no I/O and cannot
// fail: what is wrong with the rollup or the repository is reported by each call.
func NewMessageAdder[T any](r *Rollup[T], repo *tsdb.Repository[T]) *MessageAdder[T] {
	return &MessageAdder[T]{adder[T]{rollup: r, repo: repo, mode: ByMessage}}
}

// maxMessageID is how long the identity of a message may be.
const maxMessageID = 128

// Add adds the event of a message at a time to the bucket of an entity, unless the bucket's row has seen the message within
// Options.Remember: added is then false, and the error nil. The identity of a message is 1 to 128 bytes; a message must bring
// the same entity and time each time that it comes, as others are in another row.
//
// It costs a conditional write, and for a message that was seen before a read too. It tries again by itself where an answer
// was lost, within the timeout of writes; calling it again with the same message is always safe within Options.Remember.
//
// An error is a *tsdb.WriteError. It matches tsdb.ErrRejected where this call has not added the event, for one of the reasons
// of OnceAdder.Add or ErrTooManyMessages, and tsdb.ErrUnknown where it may have: call it again.
func (a *MessageAdder[T]) Add(ctx context.Context, id string, e tsdb.Entity, t time.Time, v T) (added bool, err error) {
	if a == nil {
		a = new(MessageAdder[T])
	}
	ctx, op := a.begin(ctx, 0, false)
	defer func() { op.End(err) }()
	in, u, err := a.open(ctx)
	if err != nil {
		return false, errorOf(rejected(err))
	}
	if id == "" || len(id) > maxMessageID {
		return false, errorOf(rejected(invalid.New(ErrInvalid, "message", strconv.Itoa(len(id))+" bytes", "an identity of 1 to 128 bytes")))
	}
	p, err := a.place(in, u, e, t, v)
	if err != nil {
		return false, errorOf(rejected(err))
	}
	added, out := a.rollup.added.AddMessage(ctx, in.Table, rollupadd.Message{Key: p.key, ID: id, Event: p.event, Clock: in.Store.Earliest})
	return added, errorOf(outcome(in, out))
}
