package history

import (
	"bytes"
	"context"
	"math/rand/v2"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

// export exports the tenant during the load, until that succeeds, and takes what a store holds that imports it as what
// the call saw.
func (w *world) export(ctx context.Context) {
	if !pause(ctx, w.load/2) {
		return
	}
	c := &client{world: w, id: -2, tenant: acme, node: w.nodes[1], rnd: rand.New(rand.NewPCG(w.seed, 98))}
	for ctx.Err() == nil {
		ctx, call := c.begin(w.t.Context(), "Export")
		var file bytes.Buffer
		if _, err := transfer.Export(ctx, c.node.store, acme, &file, transfer.ExportOptions{}); err != nil {
			w.explain(err)
			continue
		}
		other, err := embedded.New(w.t.Context(), embedded.Options{})
		w.must(err)
		var all []tsdb.Dataset
		for _, d := range w.sets {
			all = append(all, d)
		}
		w.must(other.Ensure(w.t.Context(), all...))
		_, err = transfer.Import(w.t.Context(), other, acme, &file, transfer.ImportOptions{Create: true})
		w.must(err)
		for _, d := range w.sets {
			d.sawAll(c, call, other)
		}
		w.must(other.Close())
		return
	}
}
