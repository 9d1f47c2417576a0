package rollup

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Measure extracts a number from a value. Its cells store multiples of 10^-Decimals.
type Measure[T any] struct {
	// Name is the measure's name, 1 to 16 bytes of a-z 0-9 _. It is part of each cell.
	Name string
	// Of returns the number, and false if the value has none. A number that is not finite, or greater than Max in
	// magnitude, counts as none: the bucket's Points minus the measure's Count is the number of values without one.
	Of func(T) (float64, bool)
	// Decimals is the number of decimal places kept, 0 to 9. Numbers are rounded to them, half away from zero.
	Decimals int
	// Max is the greatest magnitude of a number, above 0. Max times 10^Decimals is at most 2^53. If a sum has so many
	// numbers that it may exceed 64 bits, Summary.Overflow is set.
	Max float64
	// Aggregates are those kept: some of Count, Sum, Min and Max. Zero is all four, window.Basic.
	Aggregates window.Aggregates
}

// maxMeasures bounds the cells of a bucket.
const maxMeasures = 16

// maxExact is the largest number up to which a float64 represents each whole number.
const maxExact = 1 << 53

func (m *Measure[T]) check(i int) error {
	field := func(name string) string { return name + " of measure " + strconv.Itoa(i) }
	if !catalog.ShortName(m.Name) {
		return invalid.New(ErrInvalid, field("Name"), invalid.Quote(m.Name), "1 to 16 bytes of a-z 0-9 _")
	}
	switch {
	case m.Of == nil:
		return invalid.New(ErrInvalid, field("Of"), "nil", "a function")
	case m.Decimals < 0 || m.Decimals > 9:
		return invalid.New(ErrInvalid, field("Decimals"), strconv.Itoa(m.Decimals), "0 to 9")
	case !(m.Max > 0) || m.Max*math.Pow10(m.Decimals) > maxExact:
		return invalid.New(ErrInvalid, field("Max"), fmt.Sprint(m.Max), "above 0, and with its decimals at most 2^53")
	case m.Aggregates&^window.Basic != 0:
		return invalid.New(ErrInvalid, field("Aggregates"), m.Aggregates.String(), "some of "+window.Basic.String())
	}
	return nil
}

// entry returns the measure's catalogue entry.
func (m *Measure[T]) entry() catalog.RollupMeasure {
	return catalog.RollupMeasure{
		Name:       m.Name,
		Decimals:   m.Decimals,
		Max:        strconv.FormatFloat(m.Max, 'f', -1, 64),
		Aggregates: m.Aggregates.Names(),
	}
}

// scaled returns the number of a value as a multiple of the measure's unit, and false if it has none.
func (m *Measure[T]) scaled(v T) (int64, bool) {
	x, ok := m.Of(v)
	if !ok || !(math.Abs(x) <= m.Max) {
		return 0, false
	}
	return int64(math.Round(x * math.Pow10(m.Decimals))), true
}

// names returns the names of the measures.
func names[T any](measures []Measure[T]) []string {
	out := make([]string, len(measures))
	for i := range measures {
		out[i] = measures[i].Name
	}
	return out
}

func checkMeasures[T any](measures []Measure[T]) error {
	if len(measures) > maxMeasures {
		return invalid.New(ErrInvalid, "measures", strconv.Itoa(len(measures)), fmt.Sprintf("at most %d", maxMeasures))
	}
	seen := make([]string, 0, len(measures))
	for i := range measures {
		if err := measures[i].check(i); err != nil {
			return err
		}
		if slices.Contains(seen, measures[i].Name) {
			return invalid.New(ErrInvalid, "Name of measure "+strconv.Itoa(i), invalid.Quote(measures[i].Name), "each name once")
		}
		seen = append(seen, measures[i].Name)
	}
	return nil
}
