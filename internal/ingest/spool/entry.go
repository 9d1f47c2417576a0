package spool

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
)

// bucket is one of the file's tables.
type bucket int

const (
	blocks bucket = iota
	dead
	marks
	metas
	states

	counted = int(states) // the state holds a tally of the tables before this one
)

// bucketNames are in alphabetical order, the order in which walk visits the tables: marks follow their blocks, and the
// state is last.
var bucketNames = [...]string{blocks: "blocks", dead: "dead", marks: "marks", metas: "metas", states: "state"}

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	stateKey   = []byte("state")
)

const sumBytes = 4

// checksum covers an entry's table, key and value, so that an entry in the wrong place is noticed.
func checksum(b bucket, key, value []byte) uint32 {
	sum := crc32.Update(0, castagnoli, []byte(bucketNames[b]))
	sum = crc32.Update(sum, castagnoli, binary.BigEndian.AppendUint32(nil, uint32(len(key))))
	sum = crc32.Update(sum, castagnoli, key)
	return crc32.Update(sum, castagnoli, value)
}

func seal(b bucket, key, value []byte) []byte {
	return binary.BigEndian.AppendUint32(value, checksum(b, key, value))
}

func sumOf(sealed []byte) uint32 { return binary.BigEndian.Uint32(sealed[len(sealed)-sumBytes:]) }

func unseal(b bucket, key, sealed []byte) ([]byte, error) {
	if len(sealed) < sumBytes || sumOf(sealed) != checksum(b, key, sealed[:len(sealed)-sumBytes]) {
		return nil, damaged("wrong checksum in %s at %s", bucketNames[b], keyText(b, key))
	}
	return sealed[: len(sealed)-sumBytes : len(sealed)-sumBytes], nil
}

// keyText formats a key for an error.
func keyText(b bucket, key []byte) string {
	if b != metas && len(key) == 8 {
		return "sequence " + strconv.FormatUint(binary.BigEndian.Uint64(key), 10)
	}
	return hex.EncodeToString(key[:min(len(key), 32)])
}

func seqKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// tally counts the entries of a table and sums their checksums. It differs if an entry is lost or replaced by an older
// one.
type tally struct{ n, sum uint64 }

func (t *tally) add(sum uint32) { t.n, t.sum = t.n+1, t.sum+uint64(sum) }

func (t *tally) sub(sum uint32) { t.n, t.sum = t.n-1, t.sum-uint64(sum) }

// state is the entry that each commit rewrites.
type state struct {
	stream   [16]byte
	txid     uint64 // bbolt's number of the commit that wrote it
	next     uint64 // the next sequence number
	nextDead uint64 // the next dead letter's number
	tallies  [counted]tally
}

const (
	stateVersion = 1
	stateBytes   = 1 + 16 + 8 + 8 + 8 + counted*16
)

func (st *state) encode() []byte {
	out := append(make([]byte, 0, stateBytes+sumBytes), stateVersion)
	out = append(out, st.stream[:]...)
	out = binary.BigEndian.AppendUint64(out, st.txid)
	out = binary.BigEndian.AppendUint64(out, st.next)
	out = binary.BigEndian.AppendUint64(out, st.nextDead)
	for _, t := range st.tallies {
		out = binary.BigEndian.AppendUint64(out, t.n)
		out = binary.BigEndian.AppendUint64(out, t.sum)
	}
	return out
}

func (st *state) decode(b []byte) error {
	if len(b) > 0 && b[0] > stateVersion {
		return ErrVersion
	}
	if len(b) != stateBytes || b[0] != stateVersion {
		return damaged("the state has %d bytes", len(b))
	}
	copy(st.stream[:], b[1:])
	st.txid, st.next, st.nextDead = binary.BigEndian.Uint64(b[17:]), binary.BigEndian.Uint64(b[25:]), binary.BigEndian.Uint64(b[33:])
	for i := range st.tallies {
		st.tallies[i] = tally{binary.BigEndian.Uint64(b[41+16*i:]), binary.BigEndian.Uint64(b[49+16*i:])}
	}
	return nil
}

const deadVersion = 1

// encodeDead encodes a dead letter without its number, which is its key.
func encodeDead(d DeadLetter) []byte {
	out := append(make([]byte, 0, 32+len(d.Reason)+len(d.Data)), deadVersion)
	out = binary.AppendUvarint(out, d.Seq)
	out = binary.AppendVarint(out, d.Time.UnixNano())
	out = binary.AppendUvarint(out, uint64(d.Attempts))
	out = binary.AppendUvarint(out, uint64(len(d.Reason)))
	out = append(out, d.Reason...)
	return append(out, d.Data...)
}

// decodeDead decodes a dead letter. The letter's data share b's memory.
func decodeDead(id uint64, b []byte) (DeadLetter, error) {
	bad := damaged("dead letter %d cannot be read", id)
	if len(b) == 0 || b[0] == 0 {
		return DeadLetter{}, bad
	}
	if b[0] > deadVersion {
		return DeadLetter{}, ErrVersion
	}
	seq, n := uvarint(b[1:])
	if n == 0 {
		return DeadLetter{}, bad
	}
	b = b[1+n:]
	nanos, n := binary.Varint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 {
		return DeadLetter{}, bad
	}
	b = b[n:]
	attempts, n := uvarint(b)
	if n == 0 || attempts > maxAttempts {
		return DeadLetter{}, bad
	}
	b = b[n:]
	size, n := uvarint(b)
	if n == 0 || size > uint64(len(b)-n) {
		return DeadLetter{}, bad
	}
	b = b[n:]
	return DeadLetter{
		ID: id, Seq: seq, Time: time.Unix(0, nanos), Attempts: int(attempts), Reason: string(b[:size]), Data: b[size:],
	}, nil
}

// txn is a write transaction that updates the tallies.
type txn struct {
	tx *bolt.Tx
	st *state
}

func (t txn) bucket(b bucket) (*bolt.Bucket, error) {
	table := t.tx.Bucket([]byte(bucketNames[b]))
	if table == nil {
		return nil, damaged("there is no table %s", bucketNames[b])
	}
	// Keys only grow in these tables, so full pages need no room for inserts.
	if b == blocks || b == dead {
		table.FillPercent = 1
	}
	return table, nil
}

// put seals value and stores it. The transaction owns value from then on.
func (t txn) put(b bucket, key, value []byte) (size int, err error) {
	table, err := t.bucket(b)
	if err != nil {
		return 0, err
	}
	if int(b) < counted {
		if old := table.Get(key); len(old) >= sumBytes {
			t.st.tallies[b].sub(sumOf(old))
		}
	}
	value = seal(b, key, value)
	if int(b) < counted {
		t.st.tallies[b].add(sumOf(value))
	}
	return len(key) + len(value), table.Put(key, value)
}

func (t txn) delete(b bucket, key []byte) error {
	table, err := t.bucket(b)
	if err != nil {
		return err
	}
	old := table.Get(key)
	if len(old) < sumBytes {
		return damaged("no entry in %s at %s", bucketNames[b], keyText(b, key))
	}
	t.st.tallies[b].sub(sumOf(old))
	return table.Delete(key)
}

// putState writes the state; it is the last step of each transaction.
func (t txn) putState() error {
	t.st.txid = uint64(t.tx.ID())
	_, err := t.put(states, stateKey, t.st.encode())
	return err
}

// load returns an entry's value, which is in the file's mapping, or nil if there is none.
func load(tx *bolt.Tx, b bucket, key []byte) ([]byte, error) {
	table, err := txn{tx: tx}.bucket(b)
	if err != nil {
		return nil, err
	}
	sealed := table.Get(key)
	if sealed == nil {
		return nil, nil
	}
	return unseal(b, key, sealed)
}
