package main

import (
	"bufio"
	"fmt"
	"strings"
)

// confirm asks for a word before something that cannot be undone. Where nobody can answer, that is a refusal.
func (a *app) confirm(yes bool, question, word string) error {
	if yes {
		return nil
	}
	if !terminal(a.std.in) {
		return fmt.Errorf("%w: there is no terminal to ask on, and no --yes", errRefused)
	}
	fmt.Fprintf(a.std.err, "%s\nType %s to go on: ", question, word)
	answer, err := bufio.NewReader(a.std.in).ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != word {
		return errRefused
	}
	return nil
}
