package inside

import (
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tenant"
)

// Event is an event for a rollup that is to be put into a writer's journal.
type Event struct {
	Table   *bt.Table // of the repository's store
	Tenant  tenant.ID
	Dataset string
	Fields  []string
	Salts   int
	Rollup  *catalog.Rollup // the same for all events of a rollup
	Path    string
	Event   rollupadd.Event
}
