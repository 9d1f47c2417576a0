package fields

import (
	"encoding/binary"
	"slices"
	"strings"
)

// splitRecord reads the format of codec.Records, whose fields have one name each.
func splitRecord(_ *Shape, src []byte, visit func(string, []byte)) error {
	return eachField(src, func(name, value []byte) { visit(appendName("", string(name), 0), value) })
}

// eachField calls visit for each field of a record, with its value and the byte before it that says its kind.
func eachField(src []byte, visit func(name, value []byte)) error {
	count, n := binary.Uvarint(src)
	if n <= 0 {
		return errCut
	}
	src = src[n:]
	for range count {
		if len(src) == 0 || 1+int(src[0]) >= len(src) {
			return errCut
		}
		name, value := src[1:1+src[0]], src[1+int(src[0]):]
		size := valueSize(value)
		if size > len(value) {
			return errCut
		}
		visit(name, value[:size:size])
		src = value[size:]
	}
	return nil
}

// valueSize returns the size of the value at the start of src, with its type: more than there is if it is damaged.
func valueSize(src []byte) int {
	damaged := len(src) + 1
	switch src[0] {
	case 'T', 'F':
		return 1
	case 'f':
		return 9
	}
	u, n := binary.Uvarint(src[1:])
	switch {
	case n <= 0:
		return damaged
	case src[0] == 'i', src[0] == 'u':
		return 1 + n
	case src[0] == 's' && u <= uint64(len(src)):
		return 1 + n + int(u)
	}
	return damaged
}

func joinRecord(parts []Part) ([]byte, error) {
	type field struct {
		name string
		raw  []byte
	}
	all := make([]field, len(parts))
	for i, p := range parts {
		if all[i] = (field{p.Path, p.Raw}); !plain(p.Path) {
			all[i].name = Names(p.Path)[0]
		}
	}
	slices.SortFunc(all, func(a, b field) int { return strings.Compare(a.name, b.name) })
	out := binary.AppendUvarint(nil, uint64(len(all)))
	for _, f := range all {
		out = append(append(out, byte(len(f.name))), f.name...)
		out = append(out, f.raw...)
	}
	return out, nil
}
