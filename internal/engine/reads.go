package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"io"

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

// SampleRowKeysAll is SampleRowKeys with its whole answer at once: keys that lie at most 64 KiB apart, or a four-thousandth of the
// table, those where files begin and where the table was split when it was created, each with about how many bytes on disk
// lie before it. The last is the end: an empty key, or the first after the rows of a view.
func (e *Engine) SampleRowKeysAll(ctx context.Context, req *bigtablepb.SampleRowKeysRequest) ([]*bigtablepb.SampleRowKeysResponse, error) {
	samples, err := e.sampleRowKeys(ctx, req)
	if err != nil {
		return nil, statusOf(err)
	}
	return samples, nil
}
