package gc

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// maxClassName bounds a class's name, which is sent with every cell written or read.
const maxClassName = 32

// A Class is a retention class: a column family and the policy that removes its data. Datasets with the same
// retention share a class.
//
// The zero Class means the default of the option that has it; [Class.IsZero] reports it. A Class is a plain value;
// compare two with [Class.Equal].
type Class struct {
	// Name is the name of the column family: 1 to 32 bytes of A-Z a-z 0-9 _ -, starting with a letter or a digit.
	// Names with a leading _ or a dot are reserved for the store. Keep it short: it is sent with each cell.
	Name string
	// Policy removes the family's data. Zero keeps everything.
	Policy Policy
	// ColdAfter allows Bigtable to keep data of this age and older in its infrequent access tier, which costs less and is
	// slower to read. Zero never allows it. Otherwise it is a whole number of seconds, at least 30 days, as Bigtable requires,
	// and less than the age at which Policy removes the data.
	//
	// Tiered storage is a setting of the table, not of a family, and works by the cells' timestamps. A table moves cells of
	// an age only if all its classes whose data live that long allow it: its age is the largest ColdAfter of its classes, and
	// at least the age at which classes without ColdAfter remove their data. A class without ColdAfter that keeps data as long
	// as all classes with it, or longer, therefore prevents tiered storage. If datasets state different values for a class,
	// the largest counts, and zero prevails over any other.
	//
	// Ensure creates a table with its age, and never changes it later: package retention does. docs/retention.md says what
	// reads of cold data cost, and what else becomes cold.
	ColdAfter time.Duration `json:",omitzero"`
}

// minColdAfter is Bigtable's limit, by adminpb.TieredStorageRule in cloud.google.com/go/bigtable.
const minColdAfter = 30 * 24 * time.Hour

// IsZero reports whether the class has neither a name, nor a policy, nor ColdAfter.
func (c Class) IsZero() bool { return c.Name == "" && c.Policy.Equal(Never()) && c.ColdAfter == 0 }

// Equal reports whether c and d have the same name and ColdAfter, and policies that remove the same cells.
func (c Class) Equal(d Class) bool {
	return c.Name == d.Name && c.Policy.Equal(d.Policy) && c.ColdAfter == d.ColdAfter
}

// String returns the class for people to read: "d90 (maxage=90d)" or "d90 (maxage=90d, cold after 30d)".
func (c Class) String() string {
	if c.ColdAfter == 0 {
		return fmt.Sprintf("%s (%v)", c.Name, c.Policy)
	}
	return fmt.Sprintf("%s (%v, cold after %s)", c.Name, c.Policy, ageText(c.ColdAfter))
}

// ageText writes an age as policies do: "30d".
func ageText(age time.Duration) string {
	if p := MaxAge(age); p.Validate() == nil {
		return strings.TrimPrefix(p.String(), "maxage=")
	}
	return age.String()
}

// Validate returns nil if the class is valid, else an error that wraps [ErrInvalid] and names the field, its value
// and the limit. The zero Class is invalid because it has no name: replace it by the default first.
func (c Class) Validate() error {
	if !validClassName(c.Name) {
		return invalid.New(ErrInvalid, "class", invalid.Quote(c.Name),
			fmt.Sprintf("1 to %d bytes of A-Z a-z 0-9 _ -, starting with a letter or a digit", maxClassName))
	}
	err := c.Policy.Validate()
	if bad, ok := errors.AsType[*invalid.Error](err); ok {
		return invalid.New(ErrInvalid, "class "+c.Name+": "+bad.Field, bad.Value, bad.Limit)
	}
	if err != nil {
		return err
	}
	return c.checkColdAfter()
}

func (c Class) checkColdAfter() error {
	if c.ColdAfter == 0 {
		return nil
	}
	refused := func(limit string) error {
		return invalid.New(ErrInvalid, "class "+c.Name+": ColdAfter", c.ColdAfter.String(), limit)
	}
	if c.ColdAfter < minColdAfter || c.ColdAfter%time.Second != 0 {
		return refused("0 for never, or a whole number of seconds of at least 30 days")
	}
	if age, bounded, err := c.Policy.PointAge(); err == nil && bounded && c.ColdAfter >= age {
		return refused("less than the age of " + ageText(age) + " at which the policy removes the data")
	}
	return nil
}

func validClassName(name string) bool {
	if name == "" || len(name) > maxClassName || name[0] == '_' || name[0] == '-' {
		return false
	}
	for i := range len(name) {
		switch b := name[i]; {
		case 'A' <= b && b <= 'Z', 'a' <= b && b <= 'z', '0' <= b && b <= '9', b == '_', b == '-':
		default:
			return false
		}
	}
	return true
}
