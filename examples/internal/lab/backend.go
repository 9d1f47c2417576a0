package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tsdb"
)

// backend is where a candidate's table is: an engine in a temporary folder, or an instance of Cloud Bigtable.
type backend struct {
	client *bigtable.Client
	admin  *bigtable.AdminClient
	closed []func() error // in the order in which they were opened
}

func (b *backend) close() error {
	var errs []error
	for _, c := range slices.Backward(b.closed) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// openEngine opens an engine in a new folder below parent. Closing it removes the folder.
func openEngine(ctx context.Context, parent string, dial []grpc.DialOption) (_ *backend, err error) {
	b := new(backend)
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	dir, err := os.MkdirTemp(parent, scratchName)
	if err != nil {
		return nil, err
	}
	b.closed = append(b.closed, func() error { return os.RemoveAll(dir) })
	server, err := local.Open(engine.Options{Dir: dir, NoSync: true, GCInterval: -1})
	if err != nil {
		return nil, err
	}
	b.closed = append(b.closed, server.Close)
	conn, err := server.Dial(slices.Concat(tsdb.DialOptions(), dial)...)
	if err != nil {
		return nil, err
	}
	if b.client, b.admin, err = local.Clients(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	b.closed = append(b.closed, b.client.Close)
	return b, nil
}

// scheme is what the official client removes from an emulator's address.
var scheme = regexp.MustCompile(`^(http://|https://|passthrough:///)`)

// openCloud connects to an instance, or to an emulator if BIGTABLE_EMULATOR_HOST is set.
func openCloud(ctx context.Context, c tsdb.Config, dial []grpc.DialOption) (_ *backend, err error) {
	b := new(backend)
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	dial = slices.Concat(tsdb.DialOptions(), c.DialOptions, dial)
	var opts, adminOpts []option.ClientOption
	if host := os.Getenv("BIGTABLE_EMULATOR_HOST"); host != "" {
		conn, err := grpc.NewClient("passthrough:///"+scheme.ReplaceAllString(host, ""), append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		if err != nil {
			return nil, err
		}
		b.closed = append(b.closed, func() error { _ = conn.Close(); return nil }) // the data client closes it, once it is there
		opts = append(opts, option.WithGRPCConn(conn))
		adminOpts = opts
	} else {
		for _, d := range dial {
			opts = append(opts, option.WithGRPCDialOption(d))
		}
	}
	conf := tsdb.ClientConfig()
	conf.AppProfile, conf.MetricsProvider = c.AppProfile, cmp.Or[bigtable.MetricsProvider](c.MetricsProvider, bigtable.NoopMetricsProvider{})
	if b.client, err = bigtable.NewClientWithConfig(ctx, c.Project, c.Instance, conf, slices.Concat(opts, c.ClientOptions)...); err != nil {
		return nil, fmt.Errorf("open %s/%s: %w", c.Project, c.Instance, err)
	}
	b.closed = append(b.closed, b.client.Close)
	if b.admin, err = bigtable.NewAdminClient(ctx, c.Project, c.Instance, slices.Concat(adminOpts, c.ClientOptions)...); err != nil {
		return nil, fmt.Errorf("open %s/%s: %w", c.Project, c.Instance, err)
	}
	if len(adminOpts) == 0 { // otherwise the connection is that of the data client
		b.closed = append(b.closed, b.admin.Close)
	}
	return b, nil
}
