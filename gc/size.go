package gc

import "time"

const (
	// maxRuleBytes is the service's limit on an encoded rule.
	maxRuleBytes = 500
	// maxNesting bounds the recursion over text from outside. The service's limit on bytes is reached first.
	maxNesting = 64
)

// ruleSize returns the size of the terms in the service's encoding, in bytes: the message
// google.bigtable.admin.v2.GcRule as protobuf. Each of its fields has a tag of one byte.
func ruleSize(terms []term) int {
	if len(terms) == 1 {
		return terms[0].size()
	}
	union := 0
	for _, t := range terms {
		union += message(t.size())
	}
	return message(union)
}

// size returns the size of the rule of a term.
func (t term) size() int {
	age, versions := 0, 0
	if t.age != 0 {
		age = message(1 + varint(uint64(t.age/time.Second))) // google.protobuf.Duration in whole seconds
	}
	if t.versions != 0 {
		versions = 1 + varint(uint64(t.versions))
	}
	if age == 0 || versions == 0 {
		return age + versions
	}
	return message(message(age) + message(versions))
}

// message returns the size of a field that is a message of n bytes.
func message(n int) int { return 1 + varint(uint64(n)) + n }

// varint returns the size of a number.
func varint(n uint64) int {
	size := 1
	for n >= 0x80 {
		n >>= 7
		size++
	}
	return size
}
