package zstd_test

import (
	"fmt"
	"strings"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
)

// A dataset begins to compress: new reports are compressed, and stored ones stay readable.
func ExampleWrap() {
	plain := codec.JSON[[]string]()
	reports := codec.Fallback(zstd.Wrap(plain, zstd.Options{}), plain)

	payload, err := reports.Append(nil, strings.Split(strings.Repeat("open closed ", 100), " "))
	fmt.Println(reports.Tag(), len(payload) < 100, err)

	stored, err := decodeTag(reports, "json", []byte(`["open"]`))
	fmt.Println(stored, err)
	// Output:
	// json+zstd true <nil>
	// [open] <nil>
}

// A payload above the limit is rejected when it is written, and when it is read, before memory is allocated for it.
func ExampleOptions() {
	c := zstd.Wrap(codec.String(), zstd.Options{MaxSize: 1 << 10})

	_, err := c.Append(nil, strings.Repeat("a", 1<<11))
	fmt.Println(err)
	// Output:
	// codec: value cannot be encoded as "str+zstd": payload of 2048 bytes before compression; want 1024 at most
}

// decodeTag decodes a payload with a tag, as a store does.
func decodeTag[T any](c codec.Codec[T], tag string, src []byte) (v T, err error) {
	for _, r := range codec.Readers(c) {
		if r.Tag == tag {
			return r.Decode(src)
		}
	}
	return v, codec.ErrUnknownTag
}
