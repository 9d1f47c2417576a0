package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

// messages are the types of protobuf payloads, which the catalogue does not know. The nil messages are none.
type messages struct {
	set       *descriptorpb.FileDescriptorSet
	byDataset map[string]string
}

// add takes dataset=message.
func (m *messages) add(text string) error {
	dataset, name, ok := strings.Cut(text, "=")
	if !ok || dataset == "" || name == "" {
		return fmt.Errorf("%q; want dataset=package.Message", text)
	}
	if m.byDataset == nil {
		m.byDataset = map[string]string{}
	}
	m.byDataset[dataset] = name
	return nil
}

// read reads the descriptors of the messages from a file, and checks that all messages are there.
func (m *messages) read(file string) error {
	switch {
	case file == "" && m.byDataset == nil:
		return nil
	case file == "":
		return errors.New("-message is set without -descriptors, which describe the messages")
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("-descriptors: %w", err)
	}
	m.set = new(descriptorpb.FileDescriptorSet)
	if err := proto.Unmarshal(data, m.set); err != nil {
		return fmt.Errorf("-descriptors: %s is not what \"protoc --include_imports --descriptor_set_out\" writes: %w", file, err)
	}
	for dataset, name := range m.byDataset {
		if _, err := dynamic.NewField("", m.of(name, tagProto)); err != nil {
			return fmt.Errorf("-message %s=%s: %w", dataset, name, err)
		}
	}
	return nil
}

var tagProto = codec.Proto[*descriptorpb.FileDescriptorSet]().Tag()

func (m *messages) of(name, tag string) dynamic.Options {
	return dynamic.Options{Descriptors: m.set, Messages: map[string]string{tag: name}}
}

// options returns how the payloads of a dataset are decoded: all its formats that this program does not know are that
// message.
func (m *messages) options(of dynamic.Description) (opts dynamic.Options) {
	if m == nil || m.byDataset[of.Name] == "" {
		return opts
	}
	opts = m.of(m.byDataset[of.Name], tagProto)
	for _, tag := range of.Tags {
		tag = strings.TrimSuffix(tag, zstd.Suffix)
		if _, err := codec.Lookup(tag, nil, ""); errors.Is(err, codec.ErrUnknownTag) {
			opts.Messages[tag] = m.byDataset[of.Name]
		}
	}
	return opts
}
