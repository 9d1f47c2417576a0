package codec

// MergeRecords merges two payloads of [Records] into one, as [Record.Merge] does: the result has the fields of both,
// and if both have a name, the value of written, whatever the kinds. It shares no memory with either. If written adds
// nothing, the result has the same bytes as stored, so merging the same fields again changes nothing.
//
// A payload that does not decode is [ErrCorrupt]; more than [MaxFields] fields in total are [ErrEncode]. It costs as
// much as two reads and a write of Records.
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
