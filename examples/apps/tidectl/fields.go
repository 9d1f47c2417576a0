package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/display"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

// reader reads the fields of payloads. The zero reader reads all formats but protobuf, of which a payload does not say
// its message.
type reader struct {
	options dynamic.Options
	decoder dynamic.Decoder
}

var tagJSON, tagProto = codec.JSON[any]().Tag(), codec.Proto[*descriptorpb.FileDescriptorSet]().Tag()

// reader returns what reads the payloads, with the messages that the command line names.
func (a *app) reader() (r reader, err error) {
	switch {
	case a.descriptors == "" && len(a.messages) == 0:
		return r, nil
	case a.descriptors == "" || len(a.messages) == 0:
		return r, usageError{fmt.Errorf("--descriptors and --message are for each other: a file of descriptors, and the message of the payloads in it")}
	}
	data, err := os.ReadFile(a.descriptors)
	if err != nil {
		return r, err
	}
	r.options = dynamic.Options{Descriptors: new(descriptorpb.FileDescriptorSet), Messages: map[string]string{}}
	if err := proto.Unmarshal(data, r.options.Descriptors); err != nil {
		return r, fmt.Errorf("%s is not what %q writes: %w", a.descriptors, "protoc --include_imports --descriptor_set_out", err)
	}
	for _, text := range a.messages {
		tag, name, given := strings.Cut(text, "=")
		if !given {
			tag, name = tagProto, text
		}
		r.options.Messages[tag] = name
	}
	if r.decoder, err = dynamic.NewDecoder(r.options); err != nil {
		return r, usageError{fmt.Errorf("--message: %w", err)}
	}
	return r, nil
}

func (a *app) messageFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "descriptors", Usage: "a `file` of protoc --include_imports --descriptor_set_out, to read protobuf payloads", Destination: &a.descriptors},
		&cli.StringSliceFlag{Name: "message", Usage: "the full `name` of their message in it, as acme.v1.Reading; TAG=NAME for another codec tag than pb; may be repeated", Destination: &a.messages},
	}
}

// fields returns the fields of a payload, or its bytes: those of a payload that is bytes, and of one that nothing
// reads.
func (r reader) fields(p dynamic.Point) (fields codec.Record, plain []byte, err error) {
	if p.Err != nil {
		return fields, nil, p.Err
	}
	fields, err = r.decoder.Decode(p.Tag, p.Payload)
	switch {
	case errors.Is(err, codec.ErrUnknownTag): // as of protobuf without --descriptors
		return codec.Record{}, p.Payload, nil
	case err != nil:
		return codec.Record{}, p.Payload, err
	}
	one, _ := fields.Lookup("")
	if plain, isBytes := one.Bytes(); isBytes {
		return codec.Record{}, plain, nil
	}
	return fields, nil, nil
}

// json returns a payload as JSON: one of the codec json as it is, and of others the fields. It returns bytes as fields
// does.
func (r reader) json(p dynamic.Point) (text json.RawMessage, plain []byte, err error) {
	if p.Err == nil && p.Tag == tagJSON && utf8.Valid(p.Payload) && json.Valid(p.Payload) {
		return p.Payload, nil, nil
	}
	fields, plain, err := r.fields(p)
	if err != nil || plain != nil {
		return nil, plain, err
	}
	text, err = json.Marshal(display.Value{Of: fields})
	return text, nil, err
}
