package bt

import (
	"context"
	"encoding/base64"
	"io"
	"math"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

func advice(factor float64, period time.Duration) *btpb.RateLimitInfo {
	return &btpb.RateLimitInfo{Factor: factor, Period: durationpb.New(period)}
}

// TestRateLimitIsBounded checks that a service that sends nonsense neither stops a writer nor makes it flood the
// service.
func TestRateLimitIsBounded(t *testing.T) {
	const period = 10 * time.Second
	for _, tt := range []struct {
		name string
		info *btpb.RateLimitInfo
		want RateLimit
	}{
		{"usual", advice(0.8, period), RateLimit{0.8, period}},
		{"none", nil, RateLimit{}},
		{"empty", &btpb.RateLimitInfo{}, RateLimit{}},
		{"no factor", advice(0, period), RateLimit{}},
		{"no period", &btpb.RateLimitInfo{Factor: 0.8}, RateLimit{}},
		{"factor below 0", advice(-1, period), RateLimit{}},
		{"factor not a number", advice(math.NaN(), period), RateLimit{}},
		{"factor minus infinity", advice(math.Inf(-1), period), RateLimit{}},
		{"factor near 0", advice(1e-300, period), RateLimit{0.7, period}},
		{"factor infinity", advice(math.Inf(1), period), RateLimit{1.3, period}},
		{"factor 1e300", advice(1e300, period), RateLimit{1.3, period}},
		{"period below 0", advice(0.8, -time.Second), RateLimit{}},
		{"period of a nanosecond", advice(0.8, 1), RateLimit{0.8, time.Second}},
		{"period of a year", advice(0.8, 366*24*time.Hour), RateLimit{0.8, time.Minute}},
		{"period out of range", &btpb.RateLimitInfo{Factor: 0.8, Period: &durationpb.Duration{Seconds: math.MaxInt64, Nanos: math.MaxInt32}}, RateLimit{0.8, time.Minute}},
		{"period out of range below 0", &btpb.RateLimitInfo{Factor: 0.8, Period: &durationpb.Duration{Seconds: math.MinInt64, Nanos: -1}}, RateLimit{}},
	} {
		var got RateLimit
		if got.note(tt.info); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// responses is a stream that answers with advice, once for each element.
type responses struct {
	grpc.ClientStream
	all []*btpb.RateLimitInfo
	end error
}

func (s *responses) RecvMsg(m any) error {
	if len(s.all) == 0 {
		return s.end
	}
	m.(*btpb.MutateRowsResponse).RateLimitInfo = s.all[0]
	s.all = s.all[1:]
	return nil
}

// TestAdviceOfAStream checks that the last advice of a stream counts, also if a response without one follows or the
// stream breaks, and that a call that does not follow it keeps none.
func TestAdviceOfAStream(t *testing.T) {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
		for _, follows := range []bool{true, false} {
			rec, want := record{answers: make([]entryState, 1)}, RateLimit{}
			if follows {
				rec.limit, want = new(RateLimit), RateLimit{0.9, 2 * time.Second}
			}
			stream := &guardedStream{rec: &rec, ClientStream: &responses{
				all: []*btpb.RateLimitInfo{nil, advice(0.8, time.Second), advice(0.9, 2*time.Second), advice(0, 0), nil}, end: end,
			}}
			for err := error(nil); err == nil; {
				err = stream.RecvMsg(new(btpb.MutateRowsResponse))
			}
			if !follows && rec.limit != nil || follows && *rec.limit != want {
				t.Errorf("end %v: got %+v, want %+v", end, rec.limit, want)
			}
		}
	}
}

// TestAnnouncement checks that a call announces that it follows advice, that it keeps all that the client announces,
// also what this program does not know, and that it announces nothing if that cannot be kept. Other calls keep the
// client's header.
func TestAnnouncement(t *testing.T) {
	encode := func(flags *btpb.FeatureFlags, enc *base64.Encoding) string {
		raw, err := proto.Marshal(flags)
		if err != nil {
			t.Fatal(err)
		}
		return enc.EncodeToString(raw)
	}
	unknown := &btpb.FeatureFlags{RetryInfo: true, PeerInfo: true}
	unknown.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
	want := proto.Clone(unknown).(*btpb.FeatureFlags)
	want.MutateRowsRateLimit2 = true
	for _, tt := range []struct {
		name   string
		values []string
		want   *btpb.FeatureFlags // nil: unchanged
	}{
		{"the client's", []string{encode(unknown, base64.URLEncoding)}, want},
		{"without padding", []string{encode(unknown, base64.RawURLEncoding)}, want},
		{"none", nil, &btpb.FeatureFlags{MutateRowsRateLimit2: true}},
		{"empty", []string{""}, &btpb.FeatureFlags{MutateRowsRateLimit2: true}},
		{"not base64", []string{"?"}, nil},
		{"not flags", []string{base64.URLEncoding.EncodeToString([]byte{0xff})}, nil},
	} {
		for _, follows := range []bool{true, false} {
			ctx := t.Context()
			for _, v := range tt.values {
				ctx = metadata.AppendToOutgoingContext(ctx, featuresHeader, v, "other", "kept")
			}
			rec := record{}
			if follows {
				rec.limit = new(RateLimit)
			}
			var sent context.Context
			_, err := guardStream(withRecord(ctx, &rec), nil, nil, "/MutateRows", func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				sent = ctx
				return nil, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			md, _ := metadata.FromOutgoingContext(sent)
			got := md.Get(featuresHeader)
			if tt.want == nil || !follows {
				if len(got) != len(tt.values) || len(got) > 0 && got[0] != tt.values[0] {
					t.Errorf("%s, follows %v: got %q, want it unchanged", tt.name, follows, got)
				}
				continue
			}
			raw, err := base64.URLEncoding.DecodeString(got[0])
			var flags btpb.FeatureFlags
			if err != nil || proto.Unmarshal(raw, &flags) != nil || !proto.Equal(&flags, tt.want) || len(got) > 1 {
				t.Errorf("%s: got %v of %q, want %v", tt.name, &flags, got, tt.want)
			}
			if other := md.Get("other"); len(other) != len(tt.values) {
				t.Errorf("%s: got other metadata %q", tt.name, other)
			}
			if !FollowsRateLimit(sent) || FollowsRateLimit(ctx) {
				t.Errorf("%s: the announcement is not seen, or seen before it is made", tt.name)
			}
		}
	}
}
