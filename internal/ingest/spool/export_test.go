package spool

// Shrinking makes a spool rewrite its file from the given size on.
func Shrinking(o Options, size int64) Options {
	o.shrink = size
	return o
}

// ParseBlock parses a block and encodes the result again.
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

// Block encodes a block of records at the given offsets.
func Block(offsets []uint32, data [][]byte) []byte {
	var b builder
	for i, o := range offsets {
		b.add(uint64(o), appendFrame(nil, data[i]))
	}
	return b.buf
}

// DecodeDead decodes a dead letter and encodes the result again.
func DecodeDead(value []byte) (again []byte, err error) {
	d, err := decodeDead(1, value)
	if err != nil {
		return nil, err
	}
	return encodeDead(d), nil
}

// FailingSync makes a spool call that function in place of each sync of a commit; sync is the real one.
func FailingSync(o Options, f func(sync func() error) error) Options {
	o.syncFile = func(file interface{ Sync() error }) error { return f(file.Sync) }
	return o
}

// FailingFolderSync makes a spool get that error where it syncs its folder after it has replaced its file.
func FailingFolderSync(o Options, fail func() error) Options {
	o.syncFolder = func(string) error { return fail() }
	return o
}
