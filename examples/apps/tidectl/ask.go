package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// confirm asks the user to type a word before an action that cannot be undone. Without a terminal it refuses.
func (a *app) confirm(ctx context.Context, yes bool, question, word string) error {
	if yes {
		return nil
	}
	if !terminal(a.std.in) {
		return fmt.Errorf("%w: there is no terminal to ask on, and no --yes", errRefused)
	}
	fmt.Fprintf(a.std.err, "%s\nType %s to go on: ", question, word)
	answered := make(chan string, 1)
	go func() { // a read of a terminal cannot be interrupted; without an answer it ends with the program
		answer, err := bufio.NewReader(a.std.in).ReadString('\n')
		if err != nil {
			answer = ""
		}
		answered <- answer
	}()
	select {
	case answer := <-answered:
		if strings.TrimSpace(answer) == word {
			return nil
		}
	case <-ctx.Done():
		fmt.Fprintln(a.std.err)
	}
	return errRefused
}
