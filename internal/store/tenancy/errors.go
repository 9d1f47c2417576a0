package tenancy

import (
	"errors"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Errors of stores. Package tsdb exports those that programs branch on, and documents them.
var (
	ErrErased         = errors.New("tsdb: the tenant or entity is erased")
	ErrDatasetDeleted = invalid.Under(ErrErased, "tsdb: the dataset is deleted")
	ErrRemoving       = errors.New("tsdb: column families of the retention class are being removed")
	ErrTenantMismatch = errors.New("tsdb: the context carries another tenant")
	ErrNoTenant       = errors.New("tsdb: the context carries no tenant")
	ErrNoView         = errors.New("tsdb: the tenant has no authorized view (EnsureView makes it)")
	ErrNoTable        = errors.New("tsdb: no such table or family (Ensure creates them)")
	ErrNoAdmin        = errors.New("tsdb: the store has no admin client")
	ErrSchemaConflict = errors.New("tsdb: the table was written by another schema")
)
