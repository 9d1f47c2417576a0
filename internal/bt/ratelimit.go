package bt

import (
	"context"
	"encoding/base64"
	"strings"
	"sync/atomic"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// RateLimit is the service's advice on the rate of bulk writes: multiply the load by Factor, and change it again after
// Period at the earliest. The zero value is no advice.
//
// The service gives it in MutateRows responses, to clients that announce that they follow it:
// https://docs.cloud.google.com/bigtable/docs/reference/data/rpc/google.bigtable.v2#ratelimitinfo
type RateLimit struct {
	Factor float64
	Period time.Duration
}

// The bounds of advice. The factors are those of the service and of its client for Java
// (RateLimitingServerStreamingCallable in googleapis/java-bigtable). A period outside its bounds is a mistake, which
// must neither make the rate swing nor fix it for long.
const (
	lowestFactor, highestFactor   = 0.7, 1.3
	shortestPeriod, longestPeriod = time.Second, time.Minute
)

// note keeps the advice of a response. The last one of a stream counts. What is no advice changes nothing: a factor or
// a period that is missing, not positive or not a number.
func (l *RateLimit) note(info *btpb.RateLimitInfo) {
	factor, period := info.GetFactor(), info.GetPeriod().AsDuration() // of nil both are 0, and AsDuration saturates
	if factor > 0 && period > 0 {
		*l = RateLimit{Factor: min(max(factor, lowestFactor), highestFactor), Period: min(max(period, shortestPeriod), longestPeriod)}
	}
}

// featuresHeader is the metadata of a request in which the client announces what it supports: FeatureFlags in base64.
const featuresHeader = "bigtable-features"

// announced holds the last value of the header and the one with the announcement. A client always sends the same value.
var announced atomic.Pointer[[2]string]

// AnnounceRateLimit returns the context of a call that announces that the caller follows RateLimitInfo. It keeps what
// the client announces. It does not set the older flag mutate_rows_rate_limit, which disables partial retries
// (feature_flags.proto).
func AnnounceRateLimit(ctx context.Context) context.Context {
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	if md == nil {
		md = metadata.MD{}
	}
	value := ""
	if all := md.Get(featuresHeader); len(all) > 0 {
		value = all[len(all)-1]
	}
	known := announced.Load()
	if known == nil || known[0] != value {
		with, ok := withRateLimit(value)
		if !ok {
			return ctx // nothing that this client announces may be lost
		}
		known = &[2]string{value, with}
		announced.Store(known)
	}
	md.Set(featuresHeader, known[1])
	return metadata.NewOutgoingContext(ctx, md)
}

// FollowsRateLimit reports whether a call announces that its caller follows RateLimitInfo. It is for connections of
// tests.
func FollowsRateLimit(ctx context.Context) bool {
	md, _ := metadata.FromOutgoingContext(ctx)
	for _, value := range md.Get(featuresHeader) {
		if flags, ok := features(value); ok && flags.MutateRowsRateLimit2 {
			return true
		}
	}
	return false
}

// features decodes a value of the header.
func features(value string) (*btpb.FeatureFlags, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(value, "="))
	flags := new(btpb.FeatureFlags)
	return flags, err == nil && proto.Unmarshal(raw, flags) == nil
}

// withRateLimit adds the flag to the value of the header. It returns false if the value is not valid.
func withRateLimit(value string) (string, bool) {
	flags, ok := features(value)
	if !ok {
		return "", false
	}
	flags.MutateRowsRateLimit2 = true
	raw, err := proto.Marshal(flags)
	return base64.URLEncoding.EncodeToString(raw), err == nil
}
