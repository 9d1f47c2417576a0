package codec

// MergeRecords merges two payloads of [Records] into one, as [Record.Merge] does: the fields of both, and where both have
// a name the value of written, whatever the kinds. The result shares no memory with either, and is equal to stored, byte
// for byte, where written adds nothing; so merging the same fields again changes nothing.
//
// A payload that does not decode is [ErrCorrupt]; fields that are more than [MaxFields] together are [ErrEncode]. It costs
// what two reads and a write of Records cost.
func MergeRecords(stored, written []byte) ([]byte, error) {
	old, err := recordCodec{}.Decode(stored)
	if err != nil {
		return nil, err
	}
	newer, err := recordCodec{}.Decode(written)
	if err != nil {
		return nil, err
	}
	merged, err := recordCodec{}.Append(nil, old.Merge(newer))
	if err != nil {
		return nil, err
	}
	return merged, nil
}
