package bt

import (
	"context"
	"fmt"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
)

// Sample is a key that the service has chosen, and about how many bytes lie before it. The empty key is the end of the table.
type Sample struct {
	Key    string
	Offset int64
}

// mostSamples bounds what Samples holds. A table has about one a tablet.
const mostSamples = 100_000

// Samples returns the service's samples of the table's keys, in order, with their offsets, which the client itself does not
// pass on: they are noted as they come by. On a client without the guard there are none, and the error is ErrUnguarded. Where
// there are more than 100,000 it fails.
func (t *Table) Samples(ctx context.Context) ([]Sample, error) {
	ctx, cancel := t.Bound(ctx, true)
	defer cancel()
	samples := []Sample{}
	keys, err := t.data.SampleRowKeys(withRecord(ctx, &record{samples: &samples}))
	switch {
	case err != nil:
		return nil, ended(ctx, err)
	case len(samples) > mostSamples:
		return nil, fmt.Errorf("tsdb: the service gave more than %d samples", mostSamples)
	case len(samples) == 0 && !t.passesGuard(ctx):
		return nil, fmt.Errorf("%w: %d samples without their offsets", ErrUnguarded, len(keys))
	}
	return samples, nil
}

// sampledStream notes samples.
type sampledStream struct {
	grpc.ClientStream
	samples *[]Sample
}

func (s sampledStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if res, ok := m.(*btpb.SampleRowKeysResponse); ok && err == nil && len(*s.samples) <= mostSamples {
		*s.samples = append(*s.samples, Sample{Key: string(res.RowKey), Offset: res.OffsetBytes})
	}
	return err
}
