package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strings"

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

// knowsProgress reports whether a client over the network understands a response that only reports progress.
func knowsProgress(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	return hasFlag(md, (*bigtablepb.FeatureFlags).GetLastScannedRowResponses)
}

// announces reports whether a client, over the network or in process, announces a feature.
func announces(ctx context.Context, flag func(*bigtablepb.FeatureFlags) bool) bool {
	in, _ := metadata.FromIncomingContext(ctx)
	out, _ := metadata.FromOutgoingContext(ctx) // in process, the context is the client's own
	return hasFlag(in, flag) || hasFlag(out, flag)
}

func hasFlag(md metadata.MD, flag func(*bigtablepb.FeatureFlags) bool) bool {
	for _, v := range md.Get("bigtable-features") {
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(v, "=")) // some clients leave out the padding
		if err != nil {
			continue
		}
		var flags bigtablepb.FeatureFlags
		if proto.Unmarshal(raw, &flags) == nil && flag(&flags) {
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

// SampleRowKeysAll is SampleRowKeys with the whole response at once. It returns keys at most 64 KiB or a
// four-thousandth of the table apart, keys at which files begin, and the table's initial splits, each with about how
// many bytes on disk are before it. The last key is the end: empty, the first key after the rows of a view, or the end
// of the request's range.
func (e *Engine) SampleRowKeysAll(ctx context.Context, req *bigtablepb.SampleRowKeysRequest) ([]*bigtablepb.SampleRowKeysResponse, error) {
	return withStatus(e.sampleRowKeys(ctx, req))
}
