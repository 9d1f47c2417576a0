package keys

import (
	"regexp"
	"strings"
)

const (
	letter = `A-Za-z\x{80}-\x{10FFFF}`
	label  = `[0-9` + letter + `][0-9` + letter + `-]*`
)

// mail matches the end of a mailbox's name, an @ or its form in a URL, and a domain. The last part of the domain has
// only letters, two bytes or more.
var mail = regexp.MustCompile("[0-9" + letter + "_+!#$&'*/=?^`{|}~\"-]" +
	`(@|%40)` + label + `(\.` + label + `)*\.([` + letter + `]{2,}|[^\x00-\x7F\x{FFFD}])([^0-9` + letter + `]|$)`)

// hasMail reports whether s contains a mail address.
func hasMail(s string) bool {
	return (strings.Contains(s, "@") || strings.Contains(s, "%40")) && mail.MatchString(s)
}
