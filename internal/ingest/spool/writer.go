package spool

import bolt "go.etcd.io/bbolt"

// writer puts records into the blocks of a run.
type writer struct {
	t   txn
	run *run
	b   builder
	buf []byte
}

// move copies the remaining records of the run's old blocks and removes these blocks.
func (o *writer) move() error {
	for _, src := range o.run.from {
		list, err := src.b.frames(o.t.tx)
		if err != nil {
			return err
		}
		for i, f := range list {
			if src.done.has(i) {
				continue
			}
			o.buf = appendFrame(o.buf[:0], f.data)
			if err := o.add(src.b.seq(i), o.buf); err != nil {
				return err
			}
		}
		if err := src.delete(o.t); err != nil {
			return err
		}
	}
	return nil
}

// append stores a record under the next sequence number.
func (o *writer) append(whole []byte) error {
	seq := o.t.st.next
	o.t.st.next++
	return o.add(seq, whole)
}

func (o *writer) add(seq uint64, whole []byte) error {
	if !o.b.fits(seq, len(whole)) {
		if err := o.flush(); err != nil {
			return err
		}
	}
	o.b.add(seq, whole)
	return nil
}

func (o *writer) flush() error {
	if o.b.n == 0 {
		return nil
	}
	size, err := o.t.put(blocks, seqKey(o.b.first), o.b.buf)
	o.run.to = append(o.run.to, newBlock(&o.b, size))
	o.b = builder{more: o.b.more}
	return err
}

// delete removes a block with its marks.
func (src *source) delete(t txn) error {
	if err := t.delete(blocks, seqKey(src.b.first)); err != nil {
		return err
	}
	if !src.b.marked {
		return nil
	}
	return t.delete(marks, seqKey(src.b.first))
}

// frames loads a block and compares it with memory. The records are in the file's mapping.
func (b *block) frames(tx *bolt.Tx) ([]frame, error) {
	value, err := load(tx, blocks, seqKey(b.first))
	if err != nil {
		return nil, err
	}
	if value == nil {
		return nil, damaged("the block of sequence %d is missing", b.first)
	}
	list, err := parseBlock(make([]frame, 0, b.n), value)
	if err != nil {
		return nil, err
	}
	if len(list) != b.n || b.first+uint64(list[b.n-1].offset)+1 != b.end() {
		return nil, damaged("the block of sequence %d differs from memory", b.first)
	}
	return list, nil
}
