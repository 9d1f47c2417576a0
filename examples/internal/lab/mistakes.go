package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// ErrInvalid is wrapped by the errors of files and arguments that are not allowed.
var ErrInvalid = invalid.ErrInput

// Mistake is something in a file that is not allowed.
type Mistake struct {
	// Line and Column are where it is, from 1 on. They are 0 if it is not at one place.
	Line, Column int
	// Text says which field is wrong, its value, and what is allowed.
	Text string
}

// String returns the mistake with its line.
func (m Mistake) String() string {
	if m.Line == 0 {
		return m.Text
	}
	return fmt.Sprintf("line %d: %s", m.Line, m.Text)
}

// FileError lists the mistakes of a file, in the order of its lines. It matches ErrInvalid.
type FileError struct{ Mistakes []Mistake }

// Error returns one line for each mistake.
func (e *FileError) Error() string {
	e = invalid.OrZero(e)
	lines := make([]string, 0, len(e.Mistakes))
	for _, m := range e.Mistakes {
		lines = append(lines, m.String())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns ErrInvalid.
func (e *FileError) Unwrap() error { return ErrInvalid }

// mostMistakes bounds the mistakes of a report: a file of another kind has one on each line.
const mostMistakes = 20

func (e *FileError) sorted() error {
	if len(e.Mistakes) == 0 {
		return nil
	}
	slices.SortStableFunc(e.Mistakes, func(a, b Mistake) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	if n := len(e.Mistakes); n > mostMistakes {
		e.Mistakes = append(e.Mistakes[:mostMistakes:mostMistakes], Mistake{Text: fmt.Sprintf("and %d more mistakes", n-mostMistakes)})
	}
	return e
}
