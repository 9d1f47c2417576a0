package display

import "strings"

// Nearest returns the name that a misspelt one is most like, and "" if none is like it.
func Nearest(text string, names []string) string {
	best, least := "", max(len(text)/3, 1)+1
	for _, name := range names {
		if d := distance(strings.ToLower(text), strings.ToLower(name)); d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// distance returns how many bytes must be added, removed or changed to get from one name to the other; two neighbours
// that are swapped are one.
func distance(a, b string) int {
	const most = 100
	if len(a) > most || len(b) > most {
		return most
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			if i == 0 || j == 0 {
				rows[i][j] = i + j
				continue
			}
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
