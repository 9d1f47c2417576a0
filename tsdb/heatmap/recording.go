package heatmap

import (
	"io"

	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Recording is what a recorder has recorded. It never changes, so it is safe for concurrent use. The zero Recording and
// nil are empty.
type Recording struct{ handle }

type handle = heat.Handle

func (r *Recording) data() *heat.Recording {
	if r == nil {
		return nil
	}
	return heat.Of(r)
}

// Write writes the recording for "tidectl heatmap". It contains row keys.
func (r *Recording) Write(w io.Writer) error {
	if w == nil {
		return invalid.New(invalid.ErrInput, "writer", "nil", "an io.Writer")
	}
	return r.data().Write(w)
}

// Save writes the recording to a file with mode 0600, which replaces one of that name at once.
func (r *Recording) Save(name string) error { return r.data().Save(name) }
