package bt

import (
	"context"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/metadata"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

// Path returns the table's full name, projects/p/instances/i/tables/t. The official client does not expose it, and
// admin calls that the client has no method for need it. The guard provides the name, so nothing is sent. Without the
// guard, Path returns ErrUnguarded.
func (t *Table) Path(ctx context.Context) (string, error) {
	if err := ctxerr.Of(ctx); err != nil {
		return "", err
	}
	ctx, cancel := within(ctx, t.timeouts.Read)
	defer cancel()
	rec := record{asks: true}
	_, _ = t.data.ReadRow(withRecord(ctx, &rec), guardRow, bigtable.RowFilter(bigtable.StripValueFilter()))
	if rec.table == "" {
		return "", ErrUnguarded
	}
	return rec.table, nil
}

// resource returns the name of the resource that a call of the official client is for.
func resource(ctx context.Context) string {
	md, _ := metadata.FromOutgoingContext(ctx)
	if names := md.Get("google-cloud-resource-prefix"); len(names) == 1 {
		return names[0]
	}
	return ""
}
