package rollup

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Measure extracts a number from a value. Its cells store multiples of 10^-Decimals.
type Measure[T any] struct {
	// Name is the measure's name, 1 to 16 bytes of a-z 0-9 _. It is part of each cell.
	Name string
	// Field is the field of the payload that has the number, with the names of nested objects joined by dots: kwh,
	// motor.temp_c. Payload is the payload itself. Fields are read as dynamic.Field.Number reads them: true is 1, and
	// decimal text is its number. The catalogue stores the field, so tools compute the same numbers without the Go type
	// (dynamic.Rollups). It is read from the stored bytes, and not from the value: in payloads of an older codec, it is
	// the field of that name. [tsdb.Define] refuses a codec of which no field can be read: for protobuf, dynamic.Fields
	// makes one. Only a derived rollup can have it.
	//
	// In a rollup with a Field, Bucket.Bad counts the payloads whose fields cannot be read. A payload that is readable
	// and not a T has no number for measures that are functions.
	Field string
	// Of returns the number, and false if the value has none, for what is no field. Only this program can compute it,
	// so tools show buckets that changed as incomplete. A number that is not finite, or greater than Max in magnitude,
	// counts as none, and so does a negative one of a counter. The bucket's Points minus the measure's Count is the
	// number of values without one.
	Of func(T) (float64, bool)
	// Decimals is the number of decimal places kept, 0 to 9. Numbers are rounded to them, half away from zero.
	Decimals int
	// Max is the greatest magnitude of a number, above 0. Max times 10^Decimals is at most 2^53. If a sum may
	// exceed 64 bits, Summary.Overflow is set.
	Max float64
	// Int returns the number as a whole multiple of 10^-Decimals, in place of Of.
	Int func(T) (int64, bool)
	// Kind says what the numbers mean, and so which aggregates are allowed. Zero is window.Gauge.
	Kind window.Kind
	// Aggregates are those kept. Zero is window.Basic for a gauge, and the default of the kind for others. Only a
	// derived rollup keeps more than window.Basic.
	Aggregates window.Aggregates
	// Added says that the rollup was stored before it had this measure, or before the measure had all of its
	// Aggregates. [tsdb.Store.Ensure] then adds them to the stored rollup, which it otherwise refuses. Buckets that are
	// stored already lack them, which Summary.Missing says, until Reader.Rebuild computes them. Only a derived rollup
	// can have it; it stays set forever, and the rollup that this one comes From declares the same. A measure that has
	// only window.Count cannot gain other aggregates, and none can gain Increase or Integral: define another measure.
	Added bool
	// Linear and MaxGap are options of window.Integral, as in window.Measure. MaxGap is in whole milliseconds.
	Linear bool
	MaxGap time.Duration

	unknown bool // neither a field nor a function is known
}

// Payload is the Measure.Field of payloads that are a number themselves, as those of codec.Float64.
const Payload = catalog.Payload

// maxField is the greatest length of a field's name.
const maxField = 200

// maxMeasures bounds the cells of a bucket.
const maxMeasures = 16

// maxExact is the largest number up to which a float64 represents each whole number.
const maxExact = 1 << 53

func (m *Measure[T]) check(i int) error {
	field := func(name string) string { return name + " of measure " + strconv.Itoa(i) }
	if !catalog.ShortName(m.Name) {
		return invalid.New(tsdb.ErrInvalid, field("Name"), invalid.Quote(m.Name), "1 to 16 bytes of a-z 0-9 _")
	}
	switch {
	case m.sources() != 1:
		return invalid.New(tsdb.ErrInvalid, field("Field, Of and Int"), strconv.Itoa(m.sources())+" of them", "one: the field that has the number, or a function that returns it")
	case len(m.Field) > maxField || !utf8.ValidString(m.Field):
		return invalid.New(tsdb.ErrInvalid, field("Field"), invalid.Quote(m.Field), "at most 200 bytes of UTF-8")
	case m.Decimals < 0 || m.Decimals > 9:
		return invalid.New(tsdb.ErrInvalid, field("Decimals"), strconv.Itoa(m.Decimals), "0 to 9")
	case !(m.Max > 0) || m.Max*math.Pow10(m.Decimals) > maxExact:
		return invalid.New(tsdb.ErrInvalid, field("Max"), fmt.Sprint(m.Max), "above 0, and with its decimals at most 2^53")
	case m.MaxGap < 0 || m.MaxGap%time.Millisecond != 0:
		return invalid.New(tsdb.ErrInvalid, field("MaxGap"), m.MaxGap.String(), "0 for none, or more, in whole milliseconds")
	case m.Aggregates&window.Integral == 0 && (m.Linear || m.MaxGap != 0):
		return invalid.New(tsdb.ErrInvalid, field("Linear and MaxGap"), fmt.Sprintf("%v and %v", m.Linear, m.MaxGap), "zero without window.Integral among the Aggregates: nothing else uses them")
	}
	if _, err := m.Kind.Resolve(m.Aggregates); err != nil {
		bad, _ := errors.AsType[*invalid.Error](err)
		return invalid.New(tsdb.ErrInvalid, field(bad.Field), bad.Value, bad.Limit)
	}
	if m.Aggregates&window.Durations != 0 {
		return invalid.New(tsdb.ErrInvalid, field("Aggregates"), window.Durations.String(), "others: a rollup keeps no durations of states, so read them from the points with window.Aggregator.Read")
	}
	return nil
}

// sources returns in how many ways the number is declared.
func (m *Measure[T]) sources() (n int) {
	for _, is := range []bool{m.Field != "", m.Of != nil, m.Int != nil, m.unknown} {
		if is {
			n++
		}
	}
	return n
}

// resolve replaces zero options by defaults.
func (m *Measure[T]) resolve() {
	if m.Aggregates == 0 && m.Kind == window.Gauge {
		m.Aggregates = window.Basic
	}
	m.Aggregates, _ = m.Kind.Resolve(m.Aggregates)
}

// joinedAggregates need the first and the last number.
const joinedAggregates = window.Delta | window.Increase | window.Integral

// has reports whether the measure keeps one of some aggregates.
func (m *Measure[T]) has(a window.Aggregates) bool { return m.Aggregates&a != 0 }

// entry returns the measure's catalogue entry.
func (m *Measure[T]) entry() catalog.RollupMeasure {
	return catalog.RollupMeasure{
		Name:       m.Name,
		Decimals:   m.Decimals,
		Max:        strconv.FormatFloat(m.Max, 'f', -1, 64),
		Aggregates: strings.Split(m.Aggregates.String(), "+"),
		Linear:     m.Linear,
		MaxGap:     m.MaxGap.Milliseconds(),
		Added:      m.Added,
		Kind:       catalog.KindOf(m.Kind.String(), m.Field),
	}
}

// scaledField returns the number that a field has as a multiple of the measure's unit, and false if it has none.
func (m *Measure[T]) scaledField(v codec.Value) (n int64, ok bool) {
	unit := math.Pow10(m.Decimals)
	if v.Kind() == codec.KindFloat {
		x, _ := v.Float()
		n, ok = int64(math.Round(x*unit)), math.Abs(x) <= m.Max
	} else if i, whole := v.Int(); whole { // exact beyond 2^53 too, where it is more than Max
		n, ok = i*int64(unit), i >= -int64(m.Max) && i <= int64(m.Max)
	}
	x, _ := v.Number()
	return n, ok && (x >= 0 || m.Kind != window.Counter)
}

// scaled returns the number of a value as a multiple of the measure's unit, and false if it has none or if it does not
// fit.
func (m *Measure[T]) scaled(v T) (int64, bool) {
	n, _, has, fits := m.number(v)
	return n, has && fits
}

// number returns the number of a value, as a multiple of the measure's unit and as it is, and whether the value has
// one. A number that does not fit cannot be stored: it is beyond Max, not finite, or a negative one of a counter.
func (m *Measure[T]) number(v T) (n int64, x float64, has, fits bool) {
	unit := math.Pow10(m.Decimals)
	if m.Int != nil {
		n, has = m.Int(v)
		x = float64(n) / unit
		fits = math.Abs(x) <= m.Max // 0.29 times 100 is less than 29
	} else if x, has = m.Of(v); math.Abs(x) <= m.Max {
		n, fits = int64(math.Round(x*unit)), true
	}
	return n, x, has, fits && (x >= 0 || m.Kind != window.Counter)
}

func checkMeasures[T any](measures []Measure[T]) error {
	if len(measures) > maxMeasures {
		return invalid.New(tsdb.ErrInvalid, "measures", strconv.Itoa(len(measures)), fmt.Sprintf("at most %d", maxMeasures))
	}
	for i := range measures {
		if err := measures[i].check(i); err != nil {
			return err
		}
		if slices.ContainsFunc(measures[:i], func(m Measure[T]) bool { return m.Name == measures[i].Name }) {
			return invalid.New(tsdb.ErrInvalid, "Name of measure "+strconv.Itoa(i), invalid.Quote(measures[i].Name), "each name once")
		}
	}
	return nil
}
