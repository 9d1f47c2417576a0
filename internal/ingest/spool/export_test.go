package spool

// Shrinking makes a spool write its file anew from a small size on.
func Shrinking(o Options, size int64) Options {
	o.shrink = size
	return o
}

// ParseBlock is parseBlock and what builder makes of its result again.
func ParseBlock(value []byte) (records int, again []byte, err error) {
	frames, err := parseBlock(nil, value)
	if err != nil {
		return 0, nil, err
	}
	var b builder
	for _, f := range frames {
		b.add(uint64(f.offset), appendFrame(nil, f.data))
	}
	return b.n, b.buf, nil
}

// Block makes a block of records at offsets.
func Block(offsets []uint32, data [][]byte) []byte {
	var b builder
	for i, o := range offsets {
		b.add(uint64(o), appendFrame(nil, data[i]))
	}
	return b.buf
}

// DecodeDead is decodeDead and what encodeDead makes of its result again.
func DecodeDead(value []byte) (again []byte, err error) {
	d, err := decodeDead(1, value)
	if err != nil {
		return nil, err
	}
	return encodeDead(d), nil
}
