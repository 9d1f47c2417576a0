package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// Rows of another tenant or dataset in the service's response do not get into a file.
func TestForeignRowIsNotExported(t *testing.T) {
	for _, tc := range []struct{ from, to string }{
		{"acme#texts#", "acme2#texts#"},
		{"acme#texts#", "acme#texts2#"},
		{"acme#heads!head#", "acme2#heads!head#"},
	} {
		opts := clock
		opts.DialOptions = []grpc.DialOption{grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := streamer(ctx, desc, cc, name, opts...)
			return lying{s, tc.from, tc.to}, err
		})}
		store, _ := tsdbtest.Open(t, opts, texts, heads)
		must(t, texts.For(store, acme).Put(t.Context(), tsdb.NewEntity("a", "b"), noon, "secret"))
		must(t, heads.For(store, acme).Put(t.Context(), tsdb.NewEntity("a"), noon, []byte("secret")))
		var file bytes.Buffer
		name, _, _ := strings.Cut(strings.TrimPrefix(tc.from, "acme#"), "#")
		name, _, _ = strings.Cut(name, "!")
		got, err := transfer.Export(t.Context(), store, acme, &file, transfer.ExportOptions{Datasets: []string{name}})
		if !errors.Is(err, tsdb.ErrForeignRow) || got.Points > 0 || bytes.Contains(file.Bytes(), []byte("secret")) {
			t.Errorf("rows of %s returned for %s: %+v, %v; want ErrForeignRow", tc.to, tc.from, got, err)
		}
	}
}

type lying struct {
	grpc.ClientStream
	from, to string
}

func (l lying) RecvMsg(m any) error {
	err := l.ClientStream.RecvMsg(m)
	if res, ok := m.(*btpb.ReadRowsResponse); ok && err == nil {
		for _, c := range res.Chunks {
			if rest, ok := bytes.CutPrefix(c.RowKey, []byte(l.from)); ok {
				c.RowKey = append([]byte(l.to), rest...)
			}
		}
	}
	return err
}
