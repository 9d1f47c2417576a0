package sqlschema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// files collects the files that define messages, by path.
type files struct {
	byPath map[string]*descriptorpb.FileDescriptorProto
	owner  map[string]string // the dataset that needed a file first
}

// filesOf returns the files that define the messages of the datasets, with all that they import, in the order of their paths.
func filesOf(datasets []tsdb.Dataset) (*descriptorpb.FileDescriptorSet, error) {
	all := files{byPath: make(map[string]*descriptorpb.FileDescriptorProto), owner: make(map[string]string)}
	for _, d := range datasets {
		shape, err := inside.OfDataset(d)
		if err != nil {
			return nil, err
		}
		if len(shape.Messages) == 0 {
			return nil, invalid.New(tsdb.ErrInvalid, "dataset "+shape.Name, "payloads "+strings.Join(shape.Tags, ", "),
				"a codec that stores plain protobuf messages, such as codec.Proto without compression")
		}
		for _, tag := range slices.Sorted(maps.Keys(shape.Messages)) {
			if err := all.add(shape.Messages[tag].ParentFile(), shape.Name); err != nil {
				return nil, err
			}
		}
	}
	set := new(descriptorpb.FileDescriptorSet)
	for _, path := range slices.Sorted(maps.Keys(all.byPath)) {
		set.File = append(set.File, all.byPath[path])
	}
	return set, nil
}

// add adds a file and what it imports.
func (a *files) add(f protoreflect.FileDescriptor, dataset string) error {
	if f == nil || f.IsPlaceholder() {
		path := "without a path"
		if f != nil {
			path = f.Path()
		}
		return invalid.New(tsdb.ErrInvalid, "dataset "+dataset, "a message that needs the file "+path, "files that the program contains")
	}
	file := protodesc.ToFileDescriptorProto(f)
	strip(file)
	if have, ok := a.byPath[f.Path()]; ok {
		if !proto.Equal(have, file) {
			return invalid.New(tsdb.ErrInvalid, "file "+f.Path(), fmt.Sprintf("two contents, in the datasets %s and %s", a.owner[f.Path()], dataset), "one content for each path")
		}
		return nil
	}
	a.byPath[f.Path()], a.owner[f.Path()] = file, dataset
	for i := range f.Imports().Len() {
		if err := a.add(f.Imports().Get(i).FileDescriptor, dataset); err != nil {
			return err
		}
	}
	return nil
}

// strip removes what payloads do not need. Reserved numbers would refuse the deleted fields that a bundle keeps.
func strip(f *descriptorpb.FileDescriptorProto) {
	f.SourceCodeInfo, f.Service = nil, nil
	stripMessages(f.MessageType)
	stripEnums(f.EnumType)
}

func stripMessages(messages []*descriptorpb.DescriptorProto) {
	for _, m := range messages {
		m.ReservedRange, m.ReservedName = nil, nil
		stripMessages(m.NestedType)
		stripEnums(m.EnumType)
	}
}

func stripEnums(enums []*descriptorpb.EnumDescriptorProto) {
	for _, e := range enums {
		e.ReservedRange, e.ReservedName = nil, nil
	}
}

// inOrder sorts files so that each comes after those that it imports.
func inOrder(all []*descriptorpb.FileDescriptorProto) []*descriptorpb.FileDescriptorProto {
	byPath := make(map[string]*descriptorpb.FileDescriptorProto, len(all))
	for _, f := range all {
		byPath[f.GetName()] = f
	}
	out := make([]*descriptorpb.FileDescriptorProto, 0, len(all))
	var visit func(f *descriptorpb.FileDescriptorProto)
	visit = func(f *descriptorpb.FileDescriptorProto) {
		if f == nil || byPath[f.GetName()] == nil {
			return
		}
		delete(byPath, f.GetName())
		for _, path := range f.GetDependency() {
			visit(byPath[path])
		}
		out = append(out, f)
	}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		visit(byPath[path])
	}
	return out
}
