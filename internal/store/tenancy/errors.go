package tenancy

import "errors"

// The errors of this package. Package tsdb exports them under the same names and documents them.
var (
	ErrErased               = errors.New("tsdb: the tenant or entity is erased")
	ErrDatasetDeleted error = deletedError{}
	ErrRemoving             = errors.New("tsdb: column families of the retention class are being removed")
	ErrTenantMismatch       = errors.New("tsdb: the context carries another tenant")
	ErrNoTenant             = errors.New("tsdb: the context carries no tenant")
	ErrNoView               = errors.New("tsdb: the tenant has no authorized view (EnsureView makes it)")
	ErrNoTable              = errors.New("tsdb: no such table or family (Ensure creates them)")
)

type deletedError struct{}

func (deletedError) Error() string { return "tsdb: the dataset is deleted" }

func (deletedError) Is(target error) bool { return target == ErrErased }
