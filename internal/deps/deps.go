package deps

import (
	_ "cloud.google.com/go/bigtable"
	_ "cloud.google.com/go/bigtable/bttest"
	_ "github.com/cenkalti/backoff/v4"
	_ "github.com/cockroachdb/pebble/v2"
	_ "github.com/klauspost/compress/zstd"
	_ "go.opentelemetry.io/otel"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sync/errgroup"
	_ "google.golang.org/api/option"
	_ "google.golang.org/grpc"
	_ "google.golang.org/grpc/test/bufconn"
	_ "google.golang.org/protobuf/proto"
)
