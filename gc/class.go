package gc

import (
	"errors"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// maxClassName bounds a class's name, which is sent with every cell written or read.
const maxClassName = 32

// A Class is a retention class: a column family and the policy that removes its data. Datasets with the same
// retention share a class.
//
// The zero Class means the default of the option that has it.
type Class struct {
	// Name is the name of the column family: 1 to 32 bytes of A-Z a-z 0-9 _ -, starting with a letter or a digit.
	// Names with a leading _ or a dot are reserved for the store. Keep it short: it is sent with each cell.
	Name string
	// Policy removes the family's data. Zero keeps everything.
	Policy Policy
}

// Validate returns nil if the class is valid, else an error that names the field, its value
// and the limit. The zero Class is invalid because it has no name: replace it by the default first.
func (c Class) Validate() error {
	if !validClassName(c.Name) {
		return invalid.New(invalid.ErrPolicy, "class", invalid.Quote(c.Name),
			fmt.Sprintf("1 to %d bytes of A-Z a-z 0-9 _ -, starting with a letter or a digit", maxClassName))
	}
	err := c.Policy.Validate()
	if bad, ok := errors.AsType[*invalid.Error](err); ok {
		return invalid.New(invalid.ErrPolicy, "class "+c.Name+": "+bad.Field, bad.Value, bad.Limit)
	}
	return err
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
