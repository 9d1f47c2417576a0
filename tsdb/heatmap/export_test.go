package heatmap

import "github.com/tidemark-go/tidemark/internal/heat"

// Totals returns the counts of the whole recording.
func (r *Recording) Totals() heat.Totals { return r.data().Totals() }
