package fields

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// splitProto collects the bytes of each field, as a field may be on the wire several times: repeated fields, and
// messages that were merged.
func splitProto(shape *Shape, payload []byte, visit func(string, []byte)) error {
	w := protoSplitter{raw: make(map[*node][]byte), present: make(map[*node]bool)}
	root := shape.top()
	if err := w.message(root, payload); err != nil {
		return err
	}
	w.visit(root, nil, visit)
	return nil
}

type protoSplitter struct {
	raw     map[*node][]byte
	present map[*node]bool // of messages and fields
}

func (w *protoSplitter) message(of *node, src []byte) error {
	for len(src) > 0 {
		number, wire, head := protowire.ConsumeTag(src)
		if head < 0 {
			return errCut
		}
		size := protowire.ConsumeFieldValue(number, wire, src[head:])
		if size < 0 {
			return errCut
		}
		if err := w.field(of, number, wire, src[:head+size], head); err != nil {
			return err
		}
		src = src[head+size:]
	}
	return nil
}

// field takes a field with its tag, whose size is head.
func (w *protoSplitter) field(of *node, number protowire.Number, wire protowire.Type, src []byte, head int) error {
	child := of.numbered[number]
	if child == nil || child.wire != wire && !(child.packed && wire == protowire.BytesType) {
		return nil // unknown
	}
	for _, other := range of.children { // the last of a oneof counts
		if child.oneof != "" && other.oneof == child.oneof && other != child {
			w.drop(other)
		}
	}
	w.present[child] = true
	if child.leaf {
		w.raw[child] = append(w.raw[child], src...)
		return nil
	}
	inner, n := protowire.ConsumeBytes(src[head:])
	if n < 0 {
		return errCut
	}
	return w.message(child, inner)
}

func (w *protoSplitter) drop(n *node) {
	delete(w.present, n)
	delete(w.raw, n)
	for _, c := range n.children {
		w.drop(c)
	}
}

// visit visits the fields of a message that is present, in the order of the shape. around are the messages around it.
func (w *protoSplitter) visit(of *node, around []*node, visit func(string, []byte)) {
	for _, c := range of.children {
		switch {
		case !c.leaf && w.present[c]:
			w.visit(c, append(around[:len(around):len(around)], c), visit)
		case c.leaf && (w.present[c] || c.always):
			visit(c.path, wrap(around, w.raw[c]))
		}
	}
}

// joinProto joins messages: the last of a field counts, or its elements are added.
func joinProto(parts []Part) (out []byte, err error) {
	for _, p := range parts {
		out = append(out, p.Raw...)
	}
	return out, nil
}

// wrap returns raw within messages.
func wrap(around []*node, raw []byte) []byte {
	for i := len(around) - 1; i >= 0; i-- {
		raw = protowire.AppendBytes(protowire.AppendTag(nil, around[i].number, protowire.BytesType), raw)
	}
	return raw
}
