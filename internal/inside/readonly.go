package inside

import (
	"slices"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/layout"
)

// ReadOnly returns a codec that reads the tags of a dataset and refuses to write, for schemas of the catalogue. decoder
// returns the function that decodes payloads with a tag.
func ReadOnly[T any](tags []string, decoder func(tag string) func(src []byte) (T, error)) codec.Codec[T] {
	c := make(readOnly[T], len(tags))
	for i, tag := range tags {
		c[i] = codec.Reader[T]{Tag: tag, Decode: decoder(tag)}
	}
	return c
}

// ReadNumbers is ReadOnly without values, for rollups of the catalogue. number returns codec.Reader.Number of a tag, or
// nil.
func ReadNumbers(tags []string, number func(tag string) func(name string) func([]byte) (codec.Value, error)) codec.Codec[struct{}] {
	c := make(readOnly[struct{}], len(tags))
	for i, tag := range tags {
		c[i] = codec.Reader[struct{}]{Tag: tag, Decode: func([]byte) (struct{}, error) { return struct{}{}, nil }, Number: number(tag)}
	}
	return c
}

// ReadFields is ReadOnly for payloads whose fields are known: layouts says how those of a tag are split.
func ReadFields[T any](tags []string, decoder func(tag string) func(src []byte) (T, error), layouts func(tag string) layout.Of[T]) codec.Codec[T] {
	c := readFields[T]{codec.Codec[T](ReadOnly(tags, decoder)).(readOnly[T]), make(map[string]layout.Of[T])}
	for _, tag := range tags {
		c.layouts[tag] = layouts(tag)
	}
	return c
}

type readFields[T any] struct {
	readOnly[T]
	layouts map[string]layout.Of[T]
}

// Layouts returns the layouts by tag. Package tsdb calls it.
func (c readFields[T]) Layouts() map[string]layout.Of[T] { return c.layouts }

type readOnly[T any] []codec.Reader[T]

func (c readOnly[T]) Tag() string { return c[0].Tag }

func (c readOnly[T]) Readers() []codec.Reader[T] { return slices.Clone(c) }

func (c readOnly[T]) Decode(src []byte) (T, error) { return c[0].Decode(src) }

func (c readOnly[T]) Append(dst []byte, _ T) ([]byte, error) {
	return dst, codecerr.NewEncode(c.Tag(), codecerr.ErrReadOnly)
}
