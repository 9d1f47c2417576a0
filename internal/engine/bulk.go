package engine

import (
	"cmp"
	"context"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// MutateRows implements the service's method.
func (e *Engine) MutateRows(req *bigtablepb.MutateRowsRequest, stream bigtablepb.Bigtable_MutateRowsServer) error {
	resp, err := e.MutateRowsAll(stream.Context(), req)
	if err != nil {
		return err
	}
	return stream.Send(resp)
}

// MutateRowsAll is MutateRows with the whole response at once. Each entry has its own status; an error concerns all of
// them.
func (e *Engine) MutateRowsAll(ctx context.Context, req *bigtablepb.MutateRowsRequest) (*bigtablepb.MutateRowsResponse, error) {
	return withStatus(e.mutateRows(ctx, req))
}

// bulk is a running MutateRows request.
type bulk struct {
	e       *Engine
	at      target
	schema  *schema
	entries []*bigtablepb.MutateRowsRequest_Entry
	plans   []entryPlan
	resp    *bigtablepb.MutateRowsResponse
	tokens  bool // an entry has a token
}

// entryPlan is the result of checking an entry.
type entryPlan struct {
	refused bool
	reads   bool
	hash    uint64 // of the row
	size    int
	token   token
}

func (e *Engine) mutateRows(ctx context.Context, req *bigtablepb.MutateRowsRequest) (*bigtablepb.MutateRowsResponse, error) {
	if err := e.enterWrite(ctx); err != nil {
		return nil, err
	}
	defer e.leave()
	at, err := e.target(req.GetTableName(), req.GetAuthorizedViewName(), "")
	if err != nil {
		return nil, err
	}
	count := 0
	for _, entry := range req.GetEntries() {
		count += len(entry.GetMutations())
	}
	if count == 0 {
		return nil, invalidf("No mutations provided")
	}
	if err := checkCount(count); err != nil {
		return nil, err
	}
	k := &bulk{e: e, at: at, entries: req.GetEntries()}
	if err := k.run(ctx); err != nil {
		return nil, err
	}
	k.resp.RateLimitInfo = e.pressure.advice(ctx)
	return k.resp, nil
}

// run applies the entries in the largest allowed batches. While it applies one, the one before is synced.
func (k *bulk) run(ctx context.Context) error {
	s, err := k.at.hold()
	if err != nil {
		return err
	}
	k.schema = s
	k.check()
	var last applied
	var seen []*state
	sync := func() {
		s, serr := k.e.waitSynced(last)
		seen, err = append(seen, s), cmp.Or(err, serr)
	}
	for from := 0; from < len(k.entries) && err == nil; {
		var a applied
		if a, from, err = k.batch(from); err == nil {
			if last.batch != nil {
				sync()
			}
			last = a
		}
	}
	if k.tokens {
		k.e.forgetTokens()
	}
	k.at.table.gate.RUnlock()
	if last.batch != nil {
		sync()
	}
	for _, s := range seen {
		if err == nil {
			err = k.e.awaitShown(ctx, s)
		}
	}
	return k.e.readError(err)
}

// check checks each entry by itself and fills in the response: a refused entry does not affect the others.
func (k *bulk) check() {
	n := len(k.entries)
	k.plans = make([]entryPlan, n)
	answers := make([]bigtablepb.MutateRowsResponse_Entry, n)
	k.resp = &bigtablepb.MutateRowsResponse{Entries: make([]*bigtablepb.MutateRowsResponse_Entry, n)}
	ok := new(rpcstatus.Status)
	for i, entry := range k.entries {
		answers[i].Index, answers[i].Status = int64(i), ok
		k.resp.Entries[i] = &answers[i]
		blind, err := checkEntry(k.at, k.schema, entry.GetRowKey(), entry.GetMutations())
		if err == nil {
			k.plans[i].token, err = k.e.tokenOf(k.at.table.id, entry.GetRowKey(), entry.GetMutations(), entry.GetIdempotency())
		}
		if err != nil {
			k.refuse(i, err)
			continue
		}
		k.tokens = k.tokens || k.plans[i].token.set
		k.plans[i].reads = !blind
		k.plans[i].hash = k.e.rowHash(k.at.table.id, entry.GetRowKey())
		k.plans[i].size = entrySize(entry)
	}
}

func (k *bulk) refuse(i int, err error) {
	k.resp.Entries[i].Status = status.Convert(err).Proto()
	k.plans[i].refused = true
}

// entrySize returns about how many bytes an entry takes in a batch.
func entrySize(entry *bigtablepb.MutateRowsRequest_Entry) int {
	size := 0
	for _, m := range entry.GetMutations() {
		c := m.GetSetCell()
		size += len(entry.GetRowKey()) + len(c.GetColumnQualifier()) + len(c.GetValue()) + batchOverhead
	}
	return size
}

// batchOverhead is about how many bytes a cell takes in a batch besides its row key, qualifier and value.
const batchOverhead = 32

// batch applies as many entries as fit, in order, starting with from. It returns the batch, which is not on disk yet,
// and the index of the next entry.
func (k *bulk) batch(from int) (a applied, to int, err error) {
	var locks rowLockSet
	reads, size := false, 0
	hashes := make([]uint64, 0, len(k.entries)-from)
	for to = from; to < len(k.entries); to++ {
		p := &k.plans[to]
		if p.refused {
			continue
		}
		if size > 0 && size+p.size > maxBatchBytes {
			break
		}
		size += p.size
		reads = reads || p.reads
		locks.add(p.hash)
		hashes = append(hashes, p.hash)
	}
	var b *pebble.Batch
	if reads {
		b = k.e.db.NewIndexedBatchWithSize(size)
	} else {
		b = k.e.db.NewBatchWithSize(size)
	}
	k.e.rows.lock(&locks, reads)
	defer k.e.rows.unlock(&locks, reads)
	w := k.e.mutator(k.at.table, k.schema, b)
	for i := from; i < to; i++ {
		if k.plans[i].refused {
			continue
		}
		if reads {
			err = w.mutateRowOnce(k.e, k.plans[i].token, k.entries[i].GetRowKey(), k.entries[i].GetMutations())
			if status.Code(err) == codes.FailedPrecondition { // the token is too old, and nothing of the entry is in the batch
				k.refuse(i, err)
				err = nil
			}
		} else {
			err = w.setRow(k.entries[i].GetRowKey(), k.entries[i].GetMutations())
		}
		if err != nil {
			return a, to, err
		}
	}
	a, err = k.e.apply(b, hashes...)
	k.e.cleanups.addDeleted(w.deleted)
	return a, to, err
}
