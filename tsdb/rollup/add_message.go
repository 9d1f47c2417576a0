package rollup

import (
	"context"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/tsdb"
)

// maxMessageID is the most bytes that a message's identity may have.
const maxMessageID = 128

// AddMessage adds the event of a message to a rollup of mode ByMessage, in the bucket of an entity at a time. If the
// bucket's row has seen the message within Options.Remember, AddMessage changes nothing and returns false and nil.
// The identity id is 1 to 128 bytes. A repeated message must have the same entity and time, because the row is chosen
// by them.
//
// AddMessage costs a conditional write, and also a read if the message was seen before. After a lost response it tries
// again, within the timeout of writes. Calling AddMessage again with the same message is always safe within
// Options.Remember.
//
// An error is a *tsdb.WriteError. If it matches tsdb.ErrRejected, this call did not add the event; the reason is
// ErrTooManyMessages or one of those that Add lists. If it matches tsdb.ErrUnknown, the event may have been
// added: call AddMessage again.
func (a *Adder[T]) AddMessage(ctx context.Context, id string, e tsdb.Entity, t time.Time, v T) (added bool, err error) {
	ctx, op := a.begin(ctx, 0, false)
	defer func() { op.End(err) }()
	in, u, err := a.open(ctx, ByMessage)
	if err != nil {
		return false, errorOf(rejected(err))
	}
	if id == "" || len(id) > maxMessageID {
		return false, errorOf(rejected(invalid.New(tsdb.ErrInvalid, "message", strconv.Itoa(len(id))+" bytes", "an identity of 1 to 128 bytes")))
	}
	p, err := a.place(in, u, e, t, v)
	if err != nil {
		return false, errorOf(rejected(err))
	}
	added, out := a.rollup.added.AddMessage(ctx, in.View, rollupadd.Message{Key: p.key, ID: id, Event: p.event, Earliest: in.Time.Earliest, Latest: in.Time.Latest})
	return added, errorOf(outcome(in, out))
}
