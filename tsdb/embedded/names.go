package embedded

import (
	"cmp"
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// names replaces the prefix of resource names, "projects/P/instances/I", by another.
type names struct{ from, to string }

// instanceNames returns how to translate the clients' names to those in the folder; the zero value if they are equal.
func (o Options) instanceNames() (names, error) {
	project, instance := cmp.Or(o.Project, Project), cmp.Or(o.Instance, Instance)
	for field, v := range map[string]string{"Project": project, "Instance": instance} {
		if strings.ContainsRune(v, '/') {
			return names{}, invalid.New(tsdb.ErrInvalid, field, v, "a name without a slash")
		}
	}
	n := names{from: instanceName(project, instance), to: instanceName(Project, Instance)}
	if n.from == n.to {
		return names{}, nil
	}
	return n, nil
}

func instanceName(project, instance string) string {
	return "projects/" + project + "/instances/" + instance
}

// back returns the replacement for responses.
func (n names) back() names { return names{from: n.to, to: n.from} }

// options returns server options that rename requests to the folder's names, and responses and errors back.
func (n names) options() []grpc.ServerOption {
	if n == (names{}) {
		return nil
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(n.unary), grpc.ChainStreamInterceptor(n.stream)}
}

func (n names) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	admin := !strings.HasPrefix(info.FullMethod, "/google.bigtable.v2.")
	if m, ok := req.(proto.Message); ok {
		n.rename(m.ProtoReflect(), admin)
	}
	resp, err := handle(ctx, req)
	if m, ok := resp.(proto.Message); ok && err == nil && admin {
		m = proto.Clone(m) // it may contain messages of the engine
		n.back().rename(m.ProtoReflect(), true)
		resp = m
	}
	return resp, n.renameError(err)
}

func (n names) stream(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return n.renameError(handle(srv, renamedStream{s, n}))
}

// renamedStream renames requests. Responses of streams are rows and keys, and have no names.
type renamedStream struct {
	grpc.ServerStream
	names names
}

func (s renamedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if m, ok := m.(proto.Message); ok && err == nil {
		s.names.rename(m.ProtoReflect(), false)
	}
	return err
}

func (n names) renameError(err error) error {
	s, ok := status.FromError(err)
	if !ok || err == nil {
		return err
	}
	p := s.Proto()
	p.Message = strings.ReplaceAll(p.GetMessage(), n.to+"/", n.from+"/")
	return status.ErrorProto(p)
}

// rename renames the text fields of a message, and with deep also those of nested messages. Data requests have their
// names at the top level, and up to 100,000 mutations below.
func (n names) rename(m protoreflect.Message, deep bool) {
	if a, ok := m.Interface().(*anypb.Any); ok {
		n.renameAny(a)
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch message := f.Kind() == protoreflect.MessageKind; {
		case f.IsMap():
			if deep && f.MapValue().Kind() == protoreflect.MessageKind {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					n.rename(v.Message(), true)
					return true
				})
			}
		case f.IsList():
			for i := 0; deep && message && i < v.List().Len(); i++ {
				n.rename(v.List().Get(i).Message(), true)
			}
		case message && deep:
			n.rename(v.Message(), true)
		case f.Kind() == protoreflect.StringKind:
			if rest, ok := strings.CutPrefix(v.String(), n.from); ok && (rest == "" || rest[0] == '/') {
				m.Set(f, protoreflect.ValueOfString(n.to+rest))
			}
		}
		return true
	})
}

// renameAny renames in the result of an operation, such as a changed table.
func (n names) renameAny(a *anypb.Any) {
	m, err := a.UnmarshalNew()
	if err != nil {
		return // an unknown type, which no method of the engine returns
	}
	n.rename(m.ProtoReflect(), true)
	_ = a.MarshalFrom(m) // it was just decoded
}
