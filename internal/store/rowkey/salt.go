package rowkey

// saltLen is the length of a salt in a key: two digits and the delimiter.
const saltLen = 3

// Salt returns the salt of the entity at path among salts: FNV-1a with 64 bits over the path's bytes, modulo salts.
func Salt(path string, salts int) int {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(path) {
		h = (h ^ uint64(path[i])) * prime
	}
	return int(h % uint64(salts))
}

func appendSalt(dst []byte, salt int) []byte {
	return append(dst, byte('0'+salt/10), byte('0'+salt%10), delim)
}

func cutSalt(s string, salts int) (salt int, rest string, ok bool) {
	if len(s) < saltLen || s[2] != delim || s[0] < '0' || s[0] > '9' || s[1] < '0' || s[1] > '9' {
		return 0, "", false
	}
	salt = int(s[0]-'0')*10 + int(s[1]-'0')
	return salt, s[saltLen:], salt < salts
}
