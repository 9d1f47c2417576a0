package engine

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"github.com/cockroachdb/pebble/v2"
	"google.golang.org/protobuf/proto"
)

// The engine's own records, in the space 0x00:
//
//	0x00 'f'                       the layout's version (4)
//	0x00 'i'                       the number of the next table (4)
//	0x00 't' | table's full name   a tableRecord
//	0x00 'v' | table (4) | name    an authorized view
//	0x00 'b' | table (4) | name    a schema bundle of an earlier version, which only the deletion of the table removes
//	0x00 'c'                       the latest time that was trusted, in microseconds since 1970 (8)
//	0x00 'd'                       the number of the first period whose tokens are not forgotten (8); see tokens.go
//
// Records of tables and views begin with a byte for their own version. Integers are big-endian.
const recordVersion = 1

func keyVersion() []byte          { return []byte{spaceMeta, 'f'} }
func keyNextTable() []byte        { return []byte{spaceMeta, 'i'} }
func keyHighTime() []byte         { return []byte{spaceMeta, 'c'} }
func keyForgotten() []byte        { return []byte{spaceMeta, 'd'} }
func keyTable(name string) []byte { return append([]byte{spaceMeta, 't'}, name...) }
func keyViews(table uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{spaceMeta, 'v'}, table)
}

func keyView(table uint32, name string) []byte { return append(keyViews(table), name...) }

func keyBundles(table uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{spaceMeta, 'b'}, table)
}

// tableRecord is the stored form of a table. It maps family names to records; the families' numbers are in order of
// creation. Tiers and ChangeStream are encoded protobuf messages. An engine from before them drops both when it changes
// the table.
type tableRecord struct {
	ID           uint32                  `json:"id"`
	NextFamily   uint32                  `json:"next_family"`
	Granularity  int32                   `json:"granularity"`
	Protected    bool                    `json:"protected,omitempty"`
	Splits       [][]byte                `json:"splits,omitempty"`
	Tiers        []byte                  `json:"tiers,omitempty"`
	ChangeStream []byte                  `json:"change_stream,omitempty"`
	Families     map[string]familyRecord `json:"families,omitempty"`
}

// familyRecord is the stored form of a family; the rule and the type are encoded protobuf messages.
type familyRecord struct {
	ID        uint32 `json:"id"`
	GCRule    []byte `json:"gc_rule,omitempty"`
	ValueType []byte `json:"value_type,omitempty"`
}

func encodeTable(r tableRecord) ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("engine: encoding a table's record: %w", err)
	}
	return append([]byte{recordVersion}, b...), nil
}

// decodeTable decodes a record and checks everything that later code relies on.
func decodeTable(b []byte) (tableRecord, error) {
	var r tableRecord
	if len(b) == 0 || b[0] != recordVersion {
		return r, fmt.Errorf("%w: table record of an unknown version", ErrDamaged)
	}
	if err := json.Unmarshal(b[1:], &r); err != nil {
		return r, fmt.Errorf("%w: table record: %w", ErrDamaged, err)
	}
	seen := make(map[uint32]bool, len(r.Families))
	for name, f := range r.Families {
		if f.ID >= r.NextFamily || seen[f.ID] {
			return r, fmt.Errorf("%w: table record: family %q has number %d", ErrDamaged, name, f.ID)
		}
		seen[f.ID] = true
	}
	return r, nil
}

func encodeView(v *adminpb.AuthorizedView) ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{recordVersion}, v)
	if err != nil {
		return nil, fmt.Errorf("engine: encoding a view's record: %w", err)
	}
	return b, nil
}

func decodeView(b []byte) (*adminpb.AuthorizedView, error) {
	if len(b) == 0 || b[0] != recordVersion {
		return nil, fmt.Errorf("%w: view record of an unknown version", ErrDamaged)
	}
	v := new(adminpb.AuthorizedView)
	if err := proto.Unmarshal(b[1:], v); err != nil {
		return nil, fmt.Errorf("%w: view record: %w", ErrDamaged, err)
	}
	return v, nil
}

// readNumber reads a record that holds a number of some bytes, and reports whether it exists. What names it in errors.
func readNumber(db *pebble.DB, key []byte, size int, what string) (number uint64, found bool, err error) {
	value, closer, err := db.Get(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return 0, false, nil
	case err != nil:
		return 0, false, storageError(err)
	case len(value) != size:
		return 0, false, errors.Join(fmt.Errorf("%w: %s of %d bytes", ErrDamaged, what, len(value)), closer.Close())
	}
	for _, b := range value {
		number = number<<8 | uint64(b)
	}
	if err := closer.Close(); err != nil {
		return 0, false, storageError(err)
	}
	return number, true, nil
}

// maxTables bounds how many tables are ever created in a folder, so that a table's range always has an end.
const maxTables = math.MaxUint32 - 1
