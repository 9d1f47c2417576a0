// Package switches is imported by code that package mutation has changed. Each change has a number and is off, unless
// the environment variable TIDEMARK_MUTANT names it. With TIDEMARK_MUTANTS_REACHED, the name of a file, the numbers of
// the changes that the program passes are written there, each once.
package switches

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

var (
	active  = number()
	reached = open()
	mu      sync.Mutex
	seen    = map[int]bool{}
)

func number() int {
	n, err := strconv.Atoi(os.Getenv("TIDEMARK_MUTANT"))
	if err != nil {
		return -1
	}
	return n
}

func open() *os.File {
	name := os.Getenv("TIDEMARK_MUTANTS_REACHED")
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	return f
}

// on reports whether change n is on.
func on(n int) bool {
	if reached != nil {
		mu.Lock()
		if !seen[n] {
			seen[n] = true
			fmt.Fprintln(reached, n)
		}
		mu.Unlock()
	}
	return n == active
}

// Not returns a condition, or its opposite.
func Not(n int, condition bool) bool { return condition != on(n) }

// Or returns a condition, or another one.
func Or(n int, condition, other bool) bool {
	if on(n) {
		return other
	}
	return condition
}

// Keep reports whether a statement is executed.
func Keep(n int) bool { return !on(n) }

// Plus returns an integer, or the next one.
func Plus[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64](n int, x T) T {
	if on(n) {
		x++
	}
	return x
}
