package adopt

import (
	"fmt"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// The reasons why something is unfit.
const (
	reasonKeys     = "keys"
	reasonTenants  = "tenants"
	reasonEntities = "entities"
	reasonTimes    = "times"
	reasonValues   = "values"
	reasonColumns  = "columns"
	reasonVersions = "versions"
	reasonPayloads = "payloads"
	reasonExpired  = "expired"
	reasonExists   = "exists"
	reasonErased   = "erased"
)

var reasons = []string{reasonKeys, reasonTenants, reasonEntities, reasonTimes, reasonValues, reasonColumns, reasonVersions, reasonPayloads, reasonExpired, reasonExists, reasonErased}

// Unfit is something in a foreign table that is no point of the mapping. It matches ErrUnfit.
type Unfit struct {
	// Reason is one of those that the mapping's skip can list:
	//
	//   - keys: the row key does not have the mapping's parts.
	//   - tenants, entities, times: that part of the key cannot be stored: its form, its length, its range.
	//   - values: the cell of a mapped column is not encoded as the mapping says. The point is left out.
	//   - columns: the row has a column that the mapping does not name. With skip, the rest of the row is a point.
	//   - versions: a column has older versions, in a table with one point in a row. With skip, the newest version is
	//     the point.
	//   - payloads: the payload is too large for the dataset.
	//   - expired: the point is older than the retention of the dataset.
	//   - exists: a first-wins dataset has another value of the point.
	//   - erased: the tenant or the entity is erased in the store.
	Reason string `json:"reason"`
	// Key is the row's key, as in the foreign table, quoted, and shortened if it is long.
	Key string `json:"key"`
	// Text says what was found and what fits.
	Text string `json:"text"`
}

// Error implements error.
func (u *Unfit) Error() string {
	u = invalid.OrZero(u)
	return fmt.Sprintf("row %s: %s: %s", u.Key, u.Reason, u.Text)
}

// Unwrap returns ErrUnfit.
func (u *Unfit) Unwrap() error { return ErrUnfit }

func unfit(reason, key, format string, args ...any) *Unfit {
	return &Unfit{Reason: reason, Key: strconv.Quote(short(key)), Text: fmt.Sprintf(format, args...)}
}

// short returns the start of a long text.
func short(text string) string {
	if len(text) > 128 {
		return text[:128] + "…"
	}
	return text
}
