package grpctenant_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/grpctenant"
)

func TestClient(t *testing.T) {
	acme := tenant.NewContext(as("globex", "initech"), tenant.MustParse("acme")) // with metadata of an earlier call
	for name, tt := range map[string]struct {
		ctx context.Context
		key string
		err error
	}{
		"a tenant":    {acme, "X-Tenant", nil},
		"nobody":      {as("globex"), "x-tenant", tenant.ErrNoCredentials},
		"the zero ID": {tenant.NewContext(acme, tenant.ID{}), "x-tenant", tenant.ErrNoCredentials},
		"no key":      {acme, "", invalid.ErrGRPC},
	} {
		c := grpctenant.Client{Key: tt.key}
		var sent []string
		err := c.Unary(tt.ctx, "/m", nil, nil, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			sent = outgoing(ctx)
			return nil
		})
		wantSent(t, name+", unary", sent, err, tt.err)
		sent = nil
		_, err = c.Stream(tt.ctx, nil, nil, "/m", func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
			sent = outgoing(ctx)
			return nil, nil
		})
		wantSent(t, name+", stream", sent, err, tt.err)
	}
	if got := outgoing(acme); len(got) != 2 {
		t.Errorf("the caller's metadata was changed: %q", got)
	}
}

func outgoing(ctx context.Context) []string {
	md, _ := metadata.FromOutgoingContext(ctx)
	return md.Get("x-tenant")
}

func wantSent(t *testing.T, name string, sent []string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		t.Errorf("%s: %v, want %v", name, err, want)
	}
	if got := fmt.Sprint(sent); want == nil && got != "[acme]" || want != nil && sent != nil {
		t.Errorf("%s: sent with tenant %s", name, got)
	}
}

func ExampleClient() {
	client := grpctenant.Client{Key: "x-tenant"}
	// grpc.NewClient(address, grpc.WithChainUnaryInterceptor(client.Unary),
	// grpc.WithChainStreamInterceptor(client.Stream))

	ctx := tenant.NewContext(context.Background(), tenant.MustParse("acme"))
	send := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		md, _ := metadata.FromOutgoingContext(ctx)
		fmt.Println(md["x-tenant"])
		return nil
	}
	fmt.Println(client.Unary(ctx, "/example.Readings/Latest", nil, nil, nil, send))
	// Output:
	// [acme]
	// <nil>
}
