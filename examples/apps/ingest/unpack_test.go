package main

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// zstandard compresses a text as a stream: its frame has no size if the text is longer than a block.
func zstandard(text string, opts ...zstd.EOption) string {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, append([]zstd.EOption{zstd.WithEncoderConcurrency(1)}, opts...)...)
	if err != nil {
		panic(err)
	}
	for part := range strings.SplitAfterSeq(text, "\n") {
		if _, err := z.Write([]byte(part)); err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

func isZstd(r *http.Request) { r.Header.Set("Content-Encoding", "zstd") }

// unusedMemory fails the test if a request has not given its memory back.
func (r *rig) unusedMemory(t *testing.T) {
	t.Helper()
	if !r.memory.Take(acme, memoryOf(r.limits)) {
		t.Error("requests that ended hold memory")
		return
	}
	r.memory.Return(acme, memoryOf(r.limits))
}

// TestZstd: a body in zstd is stored as a plain one is. A bomb, a window that is too large and a broken frame are
// refused, and the memory of each request is free again.
func TestZstd(t *testing.T) {
	small := ample
	small.Body = 4096
	r := newRig(t, small, "-key", "cpu=host")
	good := "cpu,host=a x=1 1767225600000000000\n"
	whole := zstandard(good)
	for _, path := range []string{v1, v2, v3} {
		want(t, path, r.post(path, whole, isZstd), 204)
	}
	r.stored(t, "cpu", acme, start, "{x=1}", "a")
	want(t, "two frames", r.post(v2, whole+zstandard(strings.Replace(good, "x=1", "y=2", 1)), isZstd), 204)
	r.stored(t, "cpu", acme, start, "{x=1 y=2}", "a")
	for what, tt := range map[string]struct {
		body, why string
		status    int
	}{
		"a bomb without a size": {zstandard(strings.Repeat(good, 1000), zstd.WithWindowSize(zstd.MinWindowSize)), "once it is unpacked, which is the limit of -max-body", 413},
		"a bomb with a size":    {string(mustEncoder(t).EncodeAll(make([]byte, 1<<20), nil)), "1048576 bytes, and 4096 is the most", 413},
		"a large window":        {zstandard(strings.Repeat(good, 100_000)), "compress with a smaller window", 413},
		"a larger second frame": {whole + zstandard(strings.Repeat(good, 100_000)), "", 400},
		"plain":                 {good, "not in zstd format", 400},
		"empty":                 {"", "not in zstd format", 400},
		"cut":                   {whole[:len(whole)-5], "unexpected EOF", 400},
		"a skippable frame":     {"\x50\x2a\x4d\x18\xff\xff\xff\xff" + good, "", 400},
		"a wrong checksum":      {whole[:len(whole)-1] + string(whole[len(whole)-1]^1), "", 400},
	} {
		want(t, what, r.post(v2, tt.body, isZstd), tt.status, tt.why)
		r.unusedMemory(t)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 { // each byte may be wrong: an answer, and no panic
		broken := []byte(whole)
		broken[random.IntN(len(broken))] ^= byte(1 + random.IntN(255))
		if got := r.post(v2, string(broken), isZstd); got.Code == 500 {
			t.Errorf("%x: status 500", broken)
		}
	}
	r.unusedMemory(t)
}

func mustEncoder(t *testing.T) *zstd.Encoder {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestZstdWaitsForMemory: while other requests have the memory, a frame whose window needs more is sent again.
func TestZstdWaitsForMemory(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host")
	all := memoryOf(r.limits) - 2*zstdBlock
	if !r.memory.Take(tenantOf("acme2"), all) {
		t.Fatal("no memory")
	}
	body := zstandard(strings.Repeat("cpu,host=a x=1 1767225600000000000\n", 10_000), zstd.WithWindowSize(512<<10))
	want(t, "without memory", r.post(v2, body, isZstd), 503)
	r.memory.Return(tenantOf("acme2"), all)
	want(t, "with memory", r.post(v2, body, isZstd), 204)
	r.unusedMemory(t)
}

// TestOTLPZstd: metrics in zstd are stored, over HTTP and over gRPC, and a bomb is refused.
func TestOTLPZstd(t *testing.T) {
	r := newOTLP(t, ample)
	body, err := proto.Marshal(request(gauge("m.h", number(1))))
	if err != nil {
		t.Fatal(err)
	}
	isProto := func(req *http.Request) { req.Header.Set("Content-Type", protobufType) }
	if got := r.post("/v1/metrics", zstandard(string(body)), isProto, isZstd); got.Code != 200 {
		t.Errorf("over HTTP: %d, %q", got.Code, got.Body)
	}
	if got := r.post("/v1/metrics", zstandard(strings.Repeat("\n", 2<<20), zstd.WithWindowSize(1<<20)), isProto, isZstd); got.Code != 413 {
		t.Errorf("a bomb over HTTP: %d, %q", got.Code, got.Body)
	}
	r.unusedMemory(t)

	conn, err := grpc.NewClient(r.listenGRPC(t), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.UseCompressor("zstd")))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := collectorpb.NewMetricsServiceClient(conn)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer secret")
	for _, v := range []int{2, 3} { // the second uses the encoder of the first
		if _, err := client.Export(ctx, request(gauge("m.g", number(v)))); err != nil {
			t.Errorf("over gRPC: %v", err)
		}
	}
	r.stored(t, "host", acme, start, "{m.g=3i m.h=1i}", "a")
	bomb := &metricspb.Metric{Name: strings.Repeat("m", 8<<20)}
	if _, err := client.Export(ctx, request(bomb)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a bomb over gRPC: %v", err)
	}
}
