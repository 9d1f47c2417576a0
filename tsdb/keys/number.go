package keys

// maxGroups is more than any searched number has.
const maxGroups = 16

// number is a run of groups of digits with separators between them.
type number struct {
	text   string
	groups [maxGroups]group
	n      int // groups; more than maxGroups do not count
	end    int // of the run in text
}

// group is one group of digits, its position, and whether letters next to it make it part of a code.
type group struct {
	start, end int
	code       bool
}

func (g group) len() int { return g.end - g.start }

func isSeparator(c byte) bool {
	switch c {
	case ' ', '-', '.', '/', '(', ')':
		return true
	}
	return false
}

// numberAt returns the run that begins at the digit at i.
func numberAt(text string, i int) number {
	n := number{text: text}
	for {
		g := group{start: i, code: i > 0 && isWord(text[i-1])}
		for i < len(text) && isDigit(text[i]) {
			i++
		}
		g.end = i
		g.code = g.code || i < len(text) && isWord(text[i])
		if n.n < maxGroups {
			n.groups[n.n] = g
		}
		n.n++
		n.end = i
		next := i
		for next < len(text) && next-i < 3 && isSeparator(text[next]) {
			next++
		}
		if next == i || next == len(text) || !isDigit(text[next]) {
			break
		}
		i = next
	}
	return n
}

// separator returns the text between a group and the next one.
func (n *number) separator(i int) string { return n.text[n.groups[i].end:n.groups[i+1].start] }

// shaped reports whether the groups have these lengths.
func shaped(groups []group, lengths ...int) bool {
	if len(groups) != len(lengths) {
		return false
	}
	for i, g := range groups {
		if g.len() != lengths[i] {
			return false
		}
	}
	return true
}
