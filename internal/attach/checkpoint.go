package attach

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The owner makes a checkpoint for a client, and keeps it until the call ends: also if the client is killed.
const (
	folderName     = "tidemark.Folder"
	checkpointName = "Checkpoint"
)

type folderHandler interface {
	checkpoint(s grpc.ServerStream) error
}

var folderService = grpc.ServiceDesc{
	ServiceName: folderName,
	HandlerType: (*folderHandler)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName:    checkpointName,
		ServerStreams: true,
		Handler:       func(srv any, s grpc.ServerStream) error { return srv.(folderHandler).checkpoint(s) },
	}},
}

type folderServer struct {
	engine Engine
	turn   chan struct{} // one checkpoint at a time, since each keeps files that the engine no longer needs
}

func (f *folderServer) checkpoint(s grpc.ServerStream) (err error) {
	if err := s.RecvMsg(&emptypb.Empty{}); err != nil {
		return err
	}
	ctx := s.Context()
	if err := take(ctx, f.turn); err != nil {
		return err
	}
	defer func() { <-f.turn }()
	dir, release, err := f.engine.Checkpoint(ctx)
	if err != nil {
		return status.Errorf(codes.Unavailable, "making a checkpoint: %v", err)
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := s.SendMsg(wrapperspb.String(filepath.Base(dir))); err != nil { // the client may know the folder by another path
		return err
	}
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

// Checkpoint asks the owner of a folder, at a connection, for a checkpoint, which exists until release or the end of
// ctx.
func Checkpoint(ctx context.Context, conn *grpc.ClientConn, folder string) (dir string, release func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	s, err := conn.NewStream(ctx, &folderService.Streams[0], "/"+folderName+"/"+checkpointName)
	if err != nil {
		return "", nil, err
	}
	if err := errors.Join(s.SendMsg(&emptypb.Empty{}), s.CloseSend()); err != nil {
		return "", nil, err
	}
	var at wrapperspb.StringValue
	if err := s.RecvMsg(&at); err != nil {
		if status.Code(err) == codes.Unimplemented {
			err = errors.New("the process that has the folder open makes no backups: build both programs with one version of Tidemark")
		}
		return "", nil, err
	}
	name := at.GetValue()
	if name == "" || filepath.Base(name) != name || !filepath.IsLocal(name) || name == "." {
		return "", nil, fmt.Errorf("the owner of the folder names a checkpoint %q, want a folder in it", name)
	}
	return filepath.Join(folder, name), func() error { cancel(); return nil }, nil
}
