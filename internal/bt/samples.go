package bt

import (
	"context"
	"fmt"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
)

// Sample is a key that the service has chosen, with about how many bytes are stored before it. The empty key is the end
// of the table.
type Sample struct {
	Key    string
	Offset int64
}

// mostSamples bounds the samples in memory. A table has about one for each tablet.
const mostSamples = 100_000

// Samples returns the service's samples of the table's keys, in order, with their offsets. The client does not pass on
// the offsets, so the guard records them; without the guard the error is ErrUnguarded. More than 100,000 samples are an
// error.
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

// sampledStream records samples.
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
