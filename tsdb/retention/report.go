package retention

import (
	"fmt"
	"strings"
)

// Report lists what an Apply has done, also if Apply failed. It marshals to JSON; String returns it as text.
type Report struct {
	// Table is the full name of the table.
	Table string `json:"table"`
	// Applied are the items that this call has applied. It is empty if everything was done already.
	Applied []Item `json:"applied"`
}

// String returns the report as text of several lines.
func (r Report) String() string {
	if len(r.Applied) == 0 {
		return fmt.Sprintf("Nothing was changed in %s.\n", r.Table)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Applied to %s:\n", r.Table)
	for _, i := range r.Applied {
		fmt.Fprintf(&b, "  %s\n", i.text())
	}
	return b.String()
}
