package inproc

import (
	"context"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// unary is the innermost interceptor of unary calls. It calls the engine instead of the transport.
func (c *caller) unary(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, _ grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	if err := ready(ctx, cc); err != nil {
		after(opts, err)
		return err
	}
	before(opts)
	err := c.call(ctx, method, req, reply)
	after(opts, err)
	return err
}

func (c *caller) call(ctx context.Context, method string, req, reply any) error {
	switch method {
	case bigtablepb.Bigtable_MutateRow_FullMethodName:
		in, ok := req.(*bigtablepb.MutateRowRequest)
		if !ok {
			return wrongMessage(method, req)
		}
		_, err := c.engine.MutateRow(ctx, in) // the answer has no fields
		return err
	case bigtablepb.Bigtable_CheckAndMutateRow_FullMethodName:
		in, ok := req.(*bigtablepb.CheckAndMutateRowRequest)
		out, ok2 := reply.(*bigtablepb.CheckAndMutateRowResponse)
		if !ok || !ok2 {
			return wrongMessage(method, req)
		}
		resp, err := c.engine.CheckAndMutateRow(ctx, in)
		out.PredicateMatched = resp.GetPredicateMatched()
		return err
	case bigtablepb.Bigtable_ReadModifyWriteRow_FullMethodName:
		in, ok := req.(*bigtablepb.ReadModifyWriteRowRequest)
		out, ok2 := reply.(*bigtablepb.ReadModifyWriteRowResponse)
		if !ok || !ok2 {
			return wrongMessage(method, req)
		}
		resp, err := c.engine.ReadModifyWriteRow(ctx, in)
		out.Row = resp.GetRow()
		return err
	}
	return c.dispatch(ctx, method, req, reply)
}

// dispatch calls any other method, as a gRPC server does. It copies the request: these calls are rare.
func (c *caller) dispatch(ctx context.Context, method string, req, reply any) error {
	handler := methods[method]
	if handler == nil {
		return status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	in, ok := req.(proto.Message)
	out, ok2 := reply.(proto.Message)
	if !ok || !ok2 {
		return wrongMessage(method, req)
	}
	decode := func(dst any) error {
		m, ok := dst.(proto.Message)
		if !ok || m.ProtoReflect().Descriptor() != in.ProtoReflect().Descriptor() {
			return wrongMessage(method, req)
		}
		proto.Merge(m, in)
		return nil
	}
	resp, err := handler(c.engine, ctx, decode, nil)
	if err != nil {
		return err
	}
	return move(out, resp)
}

// move sets dst to the contents of src, which the caller does not use again.
func move(dst proto.Message, src any) error {
	m, ok := src.(proto.Message)
	if !ok || m.ProtoReflect().Descriptor() != dst.ProtoReflect().Descriptor() {
		return wrongMessage("reply", src)
	}
	proto.Reset(dst)
	to := dst.ProtoReflect()
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		to.Set(f, v)
		return true
	})
	return nil
}

func wrongMessage(method string, m any) error {
	return status.Errorf(codes.Internal, "%s: message is a %T", method, m)
}
