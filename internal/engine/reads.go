package engine

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"slices"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// ReadRows implements the service's method.
func (e *Engine) ReadRows(req *bigtablepb.ReadRowsRequest, stream bigtablepb.Bigtable_ReadRowsServer) error {
	r, err := e.NewReader(stream.Context(), req)
	if err != nil {
		return err
	}
	defer r.Close()
	r.progress = knowsProgress(stream.Context())
	for {
		resp := new(bigtablepb.ReadRowsResponse)
		if err := r.Next(resp); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
}

// knowsProgress says whether a client over the network understands a response that only says how far the read is.
func knowsProgress(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, v := range md.Get("bigtable-features") {
		raw, err := base64.URLEncoding.DecodeString(v)
		if err != nil {
			continue
		}
		var flags bigtablepb.FeatureFlags
		if proto.Unmarshal(raw, &flags) == nil && flags.GetLastScannedRowResponses() {
			return true
		}
	}
	return false
}

// SampleRowKeys implements the service's method.
func (e *Engine) SampleRowKeys(req *bigtablepb.SampleRowKeysRequest, stream bigtablepb.Bigtable_SampleRowKeysServer) error {
	samples, err := e.SampleRowKeysAll(stream.Context(), req)
	if err != nil {
		return err
	}
	for _, s := range samples {
		if err := stream.Send(s); err != nil {
			return err
		}
	}
	return nil
}

// SampleRowKeysAll is SampleRowKeys with its whole answer at once: keys at which the table's files begin, and the splits
// that it was created with, each with about how many bytes on disk lie before it. An empty key, the end, is the last.
func (e *Engine) SampleRowKeysAll(ctx context.Context, req *bigtablepb.SampleRowKeysRequest) ([]*bigtablepb.SampleRowKeysResponse, error) {
	samples, err := e.sampleRowKeys(ctx, req)
	if err != nil {
		return nil, statusOf(err)
	}
	return samples, nil
}

func (e *Engine) sampleRowKeys(ctx context.Context, req *bigtablepb.SampleRowKeysRequest) ([]*bigtablepb.SampleRowKeysResponse, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.leave()
	at, err := e.target(req.GetTableName(), req.GetAuthorizedViewName(), req.GetMaterializedViewName())
	if err != nil {
		return nil, err
	}
	lower, upper := tableRange(at.table.id)
	keys := slices.Clone(at.table.schema.Load().splits)
	levels, err := e.db.SSTables()
	if err != nil {
		return nil, e.readError(err)
	}
	for _, level := range levels {
		for _, file := range level {
			start := file.Smallest.UserKey
			if bytes.Compare(start, lower) <= 0 || bytes.Compare(start, upper) >= 0 {
				continue
			}
			if prefix, err := rowPrefix(start); err == nil {
				keys = append(keys, appendRowKey(nil, prefix))
			}
		}
	}
	slices.SortFunc(keys, bytes.Compare)
	keys = slices.CompactFunc(keys, bytes.Equal)
	covered := []span{{lower, upper}}
	if at.view != nil {
		covered = at.view.spans(at.table.id)
	}
	// Through a view, neither keys nor sizes show of what it does not cover.
	keys = slices.DeleteFunc(keys, func(k []byte) bool { return len(k) == 0 || at.view != nil && !at.view.hasRow(k) })
	out := make([]*bigtablepb.SampleRowKeysResponse, 0, len(keys)+1)
	offset := int64(0)
	for i := 0; i <= len(keys); i++ {
		sample := &bigtablepb.SampleRowKeysResponse{RowKey: []byte{}}
		to := upper
		if i < len(keys) {
			sample.RowKey = keys[i]
			to = appendRow(nil, at.table.id, keys[i])
		}
		size, err := e.diskUsage(intersectSpans(covered, []span{{lower, to}}))
		if err != nil {
			return nil, err
		}
		offset = max(offset, size) // both are estimates
		sample.OffsetBytes = offset
		out = append(out, sample)
	}
	return out, nil
}

// diskUsage estimates the bytes of spans.
func (e *Engine) diskUsage(spans []span) (int64, error) {
	var sum uint64
	for _, s := range spans {
		n, err := e.db.EstimateDiskUsage(s.lower, s.upper)
		if err != nil {
			return 0, e.readError(err)
		}
		sum += n
	}
	return int64(min(sum, 1<<62)), nil
}
