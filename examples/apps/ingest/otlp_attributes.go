package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
)

// Bounds of the attributes of a data point, with those of its resource and scope. A point has at most 8 KiB, and a key
// 4 KiB.
const (
	maxAttributes      = 128
	maxAttributesBytes = 12 << 10
	maxAttributeBytes  = 1024
	maxAttributeName   = codec.MaxFieldName - len(inbound.TagPrefix)
	maxAttributeDepth  = 8
)

// tag is an attribute as text.
type tag struct{ name, value string }

var errAttributes = fmt.Errorf("more than %d attributes, with those of the resource and the scope; drop some in the mapping", maxAttributes)

// mappedTags appends attributes that are not dropped, as tags. The error is an *inbound.Error.
func mappedTags(m *inbound.Mapping, to []tag, prefix string, attributes []*commonpb.KeyValue) ([]tag, error) {
	for _, a := range attributes {
		name := prefix + a.GetKey()
		if m.Drops(name) {
			continue
		}
		if len(name) > maxAttributeName {
			return nil, badAttribute(fmt.Errorf("the name of the attribute %.64q has %d bytes, and %d is the most", name, len(name), maxAttributeName))
		}
		text, err := attributeText(a.GetValue())
		if err != nil {
			return nil, badAttribute(fmt.Errorf("the attribute %.64q: %w", name, err))
		}
		if to, err = addTag(to, name, text); err != nil {
			return nil, err
		}
	}
	return to, nil
}

// addTag appends one tag.
func addTag(to []tag, name, value string) ([]tag, error) {
	if len(to) == maxAttributes {
		return nil, badAttribute(errAttributes)
	}
	return append(to, tag{name, value}), nil
}

// scopeTags appends what identifies a scope. A scope without a name is unknown, and adds nothing.
func scopeTags(m *inbound.Mapping, to []tag, s *commonpb.InstrumentationScope) (_ []tag, err error) {
	for _, t := range []tag{{inbound.ScopePrefix + "name", s.GetName()}, {inbound.ScopePrefix + "version", s.GetVersion()}} {
		if t.value == "" || m.Drops(t.name) {
			continue
		}
		if to, err = addTag(to, t.name, shortened(t.value)); err != nil {
			return nil, err
		}
	}
	return mappedTags(m, to, inbound.ScopePrefix, s.GetAttributes())
}

func badAttribute(err error) error {
	return &inbound.Error{Reason: "its attributes cannot be stored", Err: err}
}

var errAttributeDepth = fmt.Errorf("nested more than %d deep", maxAttributeDepth)

// attributeText returns a value as text: a string as it is, a list or a map as JSON. Numbers that are equal have the
// same text.
func attributeText(v *commonpb.AnyValue) (string, error) {
	text := ""
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		text = v.StringValue
	case *commonpb.AnyValue_BoolValue:
		text, _ = codec.Bool(v.BoolValue).Text()
	case *commonpb.AnyValue_IntValue:
		text, _ = codec.Int(v.IntValue).Text()
	case *commonpb.AnyValue_DoubleValue:
		text, _ = codec.Float(v.DoubleValue).Text()
	case *commonpb.AnyValue_BytesValue:
		text = base64.StdEncoding.EncodeToString(v.BytesValue)
	case nil:
		return "", errors.New("it has no value")
	default:
		plain, err := plainValue(&commonpb.AnyValue{Value: v}, maxAttributeDepth)
		if err != nil {
			return "", err
		}
		list, err := json.Marshal(plain)
		if err != nil {
			return "", err
		}
		text = string(list)
	}
	return shortened(text), nil
}

// shortened returns a text of at most maxAttributeBytes. In a longer one, the end is replaced by a hash of the whole,
// so that two texts that differ are still two: an attribute may be a part of a key.
func shortened(text string) string {
	if len(text) <= maxAttributeBytes {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	hash := "…sha256:" + hex.EncodeToString(sum[:])
	return strings.ToValidUTF8(text[:maxAttributeBytes-len(hash)], "") + hash
}

// plainValue returns a value for encoding/json, which orders the keys of maps.
func plainValue(v *commonpb.AnyValue, depth int) (any, error) {
	if depth == 0 {
		return nil, errAttributeDepth
	}
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_ArrayValue:
		out := make([]any, len(v.ArrayValue.GetValues()))
		for i, item := range v.ArrayValue.GetValues() {
			var err error
			if out[i], err = plainValue(item, depth-1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *commonpb.AnyValue_KvlistValue:
		out := map[string]any{}
		for _, item := range v.KvlistValue.GetValues() {
			if _, ok := out[item.GetKey()]; ok {
				return nil, fmt.Errorf("the key %.64q comes twice", item.GetKey())
			}
			var err error
			if out[item.GetKey()], err = plainValue(item.GetValue(), depth-1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *commonpb.AnyValue_StringValue:
		return v.StringValue, nil
	case *commonpb.AnyValue_BoolValue:
		return v.BoolValue, nil
	case *commonpb.AnyValue_IntValue:
		return v.IntValue, nil
	case *commonpb.AnyValue_DoubleValue:
		if math.IsNaN(v.DoubleValue) || math.IsInf(v.DoubleValue, 0) {
			text, _ := codec.Float(v.DoubleValue).Text()
			return text, nil
		}
		return v.DoubleValue, nil
	case *commonpb.AnyValue_BytesValue:
		return v.BytesValue, nil
	}
	return nil, nil
}
