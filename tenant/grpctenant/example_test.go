package grpctenant_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/grpctenant"
)

func ExampleEdge() {
	edge, err := grpctenant.New(tenant.FromHeader("x-tenant"), grpctenant.Options{})
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(edge.Unary), grpc.ChainStreamInterceptor(edge.Stream))
	defer server.Stop()

	// What the server does with each call.
	handler := func(ctx context.Context, _ any) (any, error) {
		id, _ := tenant.FromContext(ctx)
		return "you are " + id.String(), nil
	}
	for _, md := range []metadata.MD{metadata.Pairs("x-tenant", "acme"), nil} {
		ctx := metadata.NewIncomingContext(context.Background(), md)
		fmt.Println(edge.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/example.Readings/Latest"}, handler))
	}
	// Output:
	// you are acme <nil>
	// <nil> rpc error: code = Unauthenticated desc = the call has no credentials, or they are not valid
}

// Anybody may call Health, and rejected calls are logged.
func ExampleOptions() {
	edge, err := grpctenant.New(tenant.FromHeader("x-tenant"), grpctenant.Options{
		Public:  func(method string) bool { return method == "/grpc.health.v1.Health/Check" },
		Refused: func(_ context.Context, method string, err error) { fmt.Println(method, err) },
	})
	if err != nil {
		panic(err)
	}
	handler := func(context.Context, any) (any, error) { return "well", nil }
	for _, method := range []string{"/grpc.health.v1.Health/Check", "/example.Readings/Latest"} {
		answer, _ := edge.Unary(context.Background(), nil, &grpc.UnaryServerInfo{FullMethod: method}, handler)
		fmt.Println(answer)
	}
	// Output:
	// well
	// /example.Readings/Latest grpctenant: tenant: unauthenticated: no credentials
	// <nil>
}
