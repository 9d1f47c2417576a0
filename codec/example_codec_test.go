package codec_test

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tidemark-go/tidemark/codec"
)

// Position is the position of a truck, in millionths of a degree, and its speed.
type Position struct {
	Lat, Lon int32
	KmH      uint16
}

// positions stores a Position in 10 bytes.
type positions struct{}

var errWidth = errors.New("want 10 bytes")

func (positions) Tag() string { return "acme.pos" }

func (positions) Append(dst []byte, p Position) ([]byte, error) {
	dst = binary.BigEndian.AppendUint32(dst, uint32(p.Lat))
	dst = binary.BigEndian.AppendUint32(dst, uint32(p.Lon))
	return binary.BigEndian.AppendUint16(dst, p.KmH), nil
}

func (positions) Decode(src []byte) (Position, error) {
	if len(src) != 10 {
		return Position{}, errWidth
	}
	return Position{
		Lat: int32(binary.BigEndian.Uint32(src)),
		Lon: int32(binary.BigEndian.Uint32(src[4:])),
		KmH: binary.BigEndian.Uint16(src[8:]),
	}, nil
}

// A custom codec has three methods. This one stores a struct in a fixed number of bytes.
func ExampleCodec() {
	var c codec.Codec[Position] = positions{}
	fmt.Println(codec.Check(c))

	payload, err := c.Append(nil, Position{Lat: 52_520_008, Lon: 13_404_954, KmH: 50})
	fmt.Printf("%x %v\n", payload, err)

	p, err := c.Decode(payload)
	fmt.Println(p, err)

	_, err = decodeTag(c, "acme.pos", payload[:3]) // as a store decodes: it wraps the codec's error
	fmt.Println(err)
	// Output:
	// <nil>
	// 0321644800cc8b1a0032 <nil>
	// {52520008 13404954 50} <nil>
	// codec: corrupt "acme.pos" payload of 3 bytes "\x03!d": want 10 bytes
}

// yesNo reads two tags: "acme.bit", which it writes, and "acme.yn", which an older program wrote.
type yesNo struct{}

func (yesNo) Tag() string { return "acme.bit" }

func (yesNo) Append(dst []byte, v bool) ([]byte, error) {
	if v {
		return append(dst, 1), nil
	}
	return append(dst, 0), nil
}

func (c yesNo) Decode(src []byte) (bool, error) { return c.decode("\x00", "\x01", src) }

func (c yesNo) Readers() []codec.Reader[bool] {
	return []codec.Reader[bool]{
		{Tag: "acme.bit", Decode: c.Decode},
		{Tag: "acme.yn", Decode: func(src []byte) (bool, error) { return c.decode("n", "y", src) }},
	}
}

// decode returns plain errors; codec.Readers adds the tag.
func (yesNo) decode(no, yes string, src []byte) (bool, error) {
	if s := string(src); s != no && s != yes {
		return false, fmt.Errorf("want %q or %q", no, yes)
	}
	return string(src) == yes, nil
}

// Most codecs get their old formats from Fallback. A codec that knows its own old formats has a method Readers.
func ExampleReader_ownFormats() {
	var c codec.Codec[bool] = yesNo{}
	fmt.Println(codec.Check(c), tagsOf(c))

	fmt.Println(decodeTag(c, "acme.yn", []byte("y")))
	fmt.Println(decodeTag(c, "acme.yn", []byte("?")))
	// Output:
	// <nil> [acme.bit acme.yn]
	// true <nil>
	// false codec: corrupt "acme.yn" payload of 1 bytes "?": want "n" or "y"
}
