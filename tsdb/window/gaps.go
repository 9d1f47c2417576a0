package window

import "github.com/tidemark-go/tidemark/internal/invalid"

// Gaps says what stands where a bucket holds no point, or none with a number for one of the measures. Whatever stands there
// has a Count of 0; what was put there is marked as Filled, and its Sum stays 0, so that totals count nothing that was not
// measured.
//
// Gaps are the buckets between the first and the last one that hold a point, and where the interval has a start or an end,
// those from there to the first point and from the last point to there too. A Gaps is written and read as text: "leave-out",
// "null", "previous", "linear".
type Gaps uint8

const (
	// LeaveOut, the default: buckets without a point are not in the sequence.
	LeaveOut Gaps = iota
	// Null: they are, and are empty.
	Null
	// Previous: they have each aggregate of the nearest older bucket that has the measure. Before the first such bucket they
	// are empty; after the last one it is carried to the end of the interval.
	Previous
	// Linear: they have each aggregate on the straight line between the nearest older and the nearest newer bucket that
	// have the measure, by the times at which the buckets start. Before the first and after the last such bucket they are
	// empty: nothing is extrapolated.
	Linear
)

var gapNames = [...]string{LeaveOut: "leave-out", Null: "null", Previous: "previous", Linear: "linear"}

// String returns the name of g.
func (g Gaps) String() string {
	if int(g) >= len(gapNames) {
		return "unknown"
	}
	return gapNames[g]
}

// MarshalText implements encoding.TextMarshaler. It fails with [ErrInvalid] for a value that is none of the constants.
func (g Gaps) MarshalText() ([]byte, error) {
	if int(g) >= len(gapNames) {
		return nil, g.invalid()
	}
	return []byte(gapNames[g]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. The error matches [ErrInvalid].
func (g *Gaps) UnmarshalText(text []byte) error {
	for i, name := range gapNames {
		if name == string(text) {
			*g = Gaps(i)
			return nil
		}
	}
	return invalid.New(ErrInvalid, "gaps", invalid.Quote(string(text)), "leave-out, null, previous or linear")
}

func (g Gaps) invalid() error {
	return invalid.New(ErrInvalid, "Gaps", g.String(), "LeaveOut, Null, Previous or Linear")
}
