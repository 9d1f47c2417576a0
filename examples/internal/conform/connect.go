package conform

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/api/option"
	transport "google.golang.org/api/transport/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/tidemark-go/tidemark/tsdb"
)

// env is what the cases of a run share.
type env struct {
	o     Options
	meter *meter
	conns []*grpc.ClientConn

	// data and admin are the services without a client in between: nothing is repeated.
	data   bigtablepb.BigtableClient
	admin  adminpb.BigtableTableAdminClient
	client *bigtable.Client
	cond   *bigtable.Client // with the app profile of conditional writes
	tables *bigtable.AdminClient

	table      string // its ID
	aggregates error  // why the table has no families that aggregate
	view       error  // why the table has no view

	// of the case
	ctx    context.Context
	prefix string // of its rows
}

const (
	dataEndpoint  = "bigtable.googleapis.com:443"
	adminEndpoint = "bigtableadmin.googleapis.com:443"
	maxMessage    = 256 << 20
)

// scheme is what the official client removes from an emulator's address.
var scheme = regexp.MustCompile(`^(http://|https://|passthrough:///)`)

func connect(ctx context.Context, o Options) (_ *env, err error) {
	e := &env{o: o, meter: newMeter()}
	defer func() {
		if err != nil {
			e.close()
			err = fmt.Errorf("conform: connect to %s/%s: %w", o.Project, o.Instance, err)
		}
	}()
	data, admin, err := e.dial(ctx)
	if err != nil {
		return nil, err
	}
	e.data, e.admin = bigtablepb.NewBigtableClient(data), adminpb.NewBigtableTableAdminClient(admin)
	open := func(profile string) (*bigtable.Client, error) {
		conf := tsdb.ClientConfig()
		conf.AppProfile, conf.MetricsProvider = profile, bigtable.NoopMetricsProvider{}
		return bigtable.NewClientWithConfig(ctx, o.Project, o.Instance, conf, option.WithGRPCConn(data))
	}
	if e.client, err = open(o.AppProfile); err == nil {
		e.cond, err = open(cmp.Or(o.ConditionalAppProfile, o.AppProfile))
	}
	if err == nil {
		e.tables, err = bigtable.NewAdminClient(ctx, o.Project, o.Instance, option.WithGRPCConn(admin))
	}
	return e, err
}

// dial opens the connections of the data API and of the admin API, which may be one.
func (e *env) dial(ctx context.Context) (data, admin *grpc.ClientConn, err error) {
	dial := slices.Concat(tsdb.DialOptions(), e.meter.dialOptions(), []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
	}, e.o.DialOptions)
	keep := func(conn *grpc.ClientConn, err error) (*grpc.ClientConn, error) {
		if err == nil {
			e.conns = append(e.conns, conn)
		}
		return conn, err
	}
	switch host := os.Getenv("BIGTABLE_EMULATOR_HOST"); {
	case e.o.Dial != nil:
		data, err = keep(e.o.Dial(dial...))
		return data, data, err
	case host != "":
		data, err = keep(grpc.NewClient("passthrough:///"+scheme.ReplaceAllString(host, ""), append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...))
		return data, data, err
	}
	cloud := func(endpoint, scope string) (*grpc.ClientConn, error) {
		opts := []option.ClientOption{option.WithEndpoint(endpoint), option.WithScopes(scope), option.WithUserAgent("tidemark-conform")}
		for _, d := range dial {
			opts = append(opts, option.WithGRPCDialOption(d))
		}
		return keep(transport.Dial(ctx, append(opts, e.o.ClientOptions...)...))
	}
	if data, err = cloud(dataEndpoint, bigtable.Scope); err == nil {
		admin, err = cloud(adminEndpoint, bigtable.AdminScope)
	}
	return data, admin, err
}

// close closes the clients. The first one that closes a connection closes it for all.
func (e *env) close() {
	for _, c := range []*bigtable.Client{e.client, e.cond} {
		if c != nil {
			_ = c.Close()
		}
	}
	if e.tables != nil {
		_ = e.tables.Close()
	}
	for _, c := range e.conns {
		_ = c.Close()
	}
}

// at returns a context with the headers that route a request of the data API.
func (e *env) at() context.Context {
	profile := cmp.Or(e.o.ConditionalAppProfile, e.o.AppProfile)
	return metadata.AppendToOutgoingContext(e.ctx,
		"google-cloud-resource-prefix", e.path(e.table),
		"x-goog-request-params", "table_name="+url.QueryEscape(e.path(e.table))+"&app_profile_id="+url.QueryEscape(profile))
}

// adminAt is at for the admin API.
func (e *env) adminAt(field, name string) context.Context {
	return metadata.AppendToOutgoingContext(e.ctx, "google-cloud-resource-prefix", e.instance(), "x-goog-request-params", field+"="+url.QueryEscape(name))
}

func (e *env) instance() string { return "projects/" + e.o.Project + "/instances/" + e.o.Instance }

func (e *env) path(table string) string { return e.instance() + "/tables/" + table }
