package tablets

import (
	"fmt"
	"math"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// ErrInvalid is wrapped by the error of an argument that is not allowed.
var ErrInvalid = invalid.ErrInput

// The limits of a Load. They bound the memory of a simulation at about 100 bytes a front.
const (
	MaxFronts = 4 << 20
	MaxReads  = 4000
	MaxJumps  = 10_000
	MaxCurves = 256

	maxRate   = 1e9 // of one front or read, a second
	maxFactor = 1e6 // of a curve
	maxRow    = 256 << 20
	maxRows   = 1e9 // of one read request
	maxStored = 1e16
	kilobyte  = 1000 // the size of a row in Google's figures
)

// Front is a place in the key space where writes arrive, such as an entity whose keys begin with it and end with the
// time. No split divides its writes, because they are always at one end of its rows. The zero Front has no load.
type Front struct {
	// Writes is how many rows a second arrive, where the curve is 1. At most a billion.
	Writes float64
	// RowBytes is the size of a row with its key. Zero is 1,000. At most 256 MiB.
	RowBytes float64
	// Stored is how many bytes are stored here before the simulation begins.
	Stored float64
	// Curve is how the rate changes with time: 0 is constant, and n is Curves[n-1] of the load.
	Curve int
	// Moves says that each write has a greater key than those before it, because the key begins with the time, or with
	// a salt and the time. A tablet cannot hold such a front still: each split leaves it a tablet of which the older
	// part is cold.
	Moves bool
}

// Jump says that a range of fronts moves together to a new place in the key space at equal intervals, behind all that
// they wrote before: the keys begin with the day or the minute, and then with the entity. The tablets that were split
// for the old place do not help at the new one: after each jump, one tablet has all the fronts of the range.
type Jump struct {
	First, Last int // fronts, without Last
	// Every is the interval, at least a second. Jumps happen at its multiples.
	Every time.Duration
}

// Read is a query that is asked at a rate, of a range of fronts.
type Read struct {
	First, Last int // fronts, without Last
	// Rate is how many requests a second are made, where the curve is 1. At most a billion.
	Rate float64
	// Rows is how many rows a request reads, or passes over in a filter. Zero is 1.
	Rows float64
	// RowBytes is the size of a row. Zero is 1,000.
	RowBytes float64
	// Curve is as that of a Front.
	Curve int
	// Across says that each request reads from all fronts of the range, as under a prefix. Without it, a request reads
	// from one front.
	Across bool
	// ByWrites says that a front is read in proportion to its writes. Without it, all fronts of the range are read
	// alike.
	ByWrites bool
	// Old says that requests read any stored rows with equal chance. Without it, they read the newest rows, which are
	// where the writes are.
	Old bool
}

// Curve returns the factor of a rate at a time after the start. It is called once for each step of a simulation.
type Curve func(at time.Duration) float64

// Load is what clients do with a table. The zero Load does nothing.
type Load struct {
	// Fronts are in the order of their keys.
	Fronts []Front
	Reads  []Read
	// Jumps are in order, and do not overlap.
	Jumps  []Jump
	Curves []Curve
	// Splits are the fronts at which the tablets of the new table begin, rising, without 0. Without them the table
	// begins with one tablet, or with as many as its stored bytes need.
	Splits []int
}

// Check returns an error that names the first thing that is not allowed. Simulate does the same.
func (l *Load) Check() error {
	if len(l.Fronts) == 0 {
		return invalid.New(ErrInvalid, "Fronts", "empty", "at least 1")
	}
	for _, list := range []struct {
		name    string
		n, most int
	}{{"Fronts", len(l.Fronts), MaxFronts}, {"Reads", len(l.Reads), MaxReads}, {"Jumps", len(l.Jumps), MaxJumps}, {"Curves", len(l.Curves), MaxCurves}} {
		if list.n > list.most {
			return invalid.New(ErrInvalid, list.name, fmt.Sprintf("%d long", list.n), fmt.Sprintf("at most %d", list.most))
		}
	}
	for i, c := range l.Curves {
		if c == nil {
			return invalid.New(ErrInvalid, fmt.Sprintf("Curves[%d]", i), "nil", "a function")
		}
	}
	for i := range l.Fronts {
		f := &l.Fronts[i]
		// The usual case costs one comparison each: there may be millions.
		if !(f.Writes >= 0 && f.Writes <= maxRate) || !(f.RowBytes >= 0 && f.RowBytes <= maxRow) || !(f.Stored >= 0 && f.Stored <= maxStored) ||
			f.Curve < 0 || f.Curve > len(l.Curves) {
			return f.check(fmt.Sprintf("Fronts[%d].", i), len(l.Curves))
		}
	}
	for i, r := range l.Reads {
		if err := r.check(fmt.Sprintf("Reads[%d].", i), len(l.Fronts), len(l.Curves)); err != nil {
			return err
		}
	}
	last := 0
	for i, j := range l.Jumps {
		name := fmt.Sprintf("Jumps[%d].", i)
		if err := checkRange(name, j.First, j.Last, len(l.Fronts)); err != nil {
			return err
		}
		if j.First < last {
			return invalid.New(ErrInvalid, name+"First", fmt.Sprint(j.First), fmt.Sprintf("at least %d, where the jump before it ends", last))
		}
		if j.Every < time.Second {
			return invalid.New(ErrInvalid, name+"Every", j.Every.String(), "at least 1s")
		}
		last = j.Last
	}
	last = 0
	for i, at := range l.Splits {
		if at <= last || at >= len(l.Fronts) {
			return invalid.New(ErrInvalid, fmt.Sprintf("Splits[%d]", i), fmt.Sprint(at), fmt.Sprintf("from %d to %d: rising, between fronts", last+1, len(l.Fronts)-1))
		}
		last = at
	}
	if len(l.Splits) >= maxTablets {
		return invalid.New(ErrInvalid, "Splits", fmt.Sprintf("%d long", len(l.Splits)), fmt.Sprintf("fewer than %d", maxTablets))
	}
	return nil
}

func (f *Front) check(name string, curves int) error {
	if err := checkNumber(name+"Writes", f.Writes, maxRate, "rows a second"); err != nil {
		return err
	}
	if err := checkNumber(name+"RowBytes", f.RowBytes, maxRow, "bytes"); err != nil {
		return err
	}
	if err := checkNumber(name+"Stored", f.Stored, maxStored, "bytes"); err != nil {
		return err
	}
	return checkCurve(name, f.Curve, curves)
}

func (r *Read) check(name string, fronts, curves int) error {
	if err := checkRange(name, r.First, r.Last, fronts); err != nil {
		return err
	}
	if err := checkNumber(name+"Rate", r.Rate, maxRate, "requests a second"); err != nil {
		return err
	}
	if err := checkNumber(name+"Rows", r.Rows, maxRows, "rows"); err != nil {
		return err
	}
	if err := checkNumber(name+"RowBytes", r.RowBytes, maxRow, "bytes"); err != nil {
		return err
	}
	return checkCurve(name, r.Curve, curves)
}

func checkRange(name string, first, last, fronts int) error {
	if first < 0 || first >= fronts {
		return invalid.New(ErrInvalid, name+"First", fmt.Sprint(first), fmt.Sprintf("a front: 0 to %d", fronts-1))
	}
	if last <= first || last > fronts {
		return invalid.New(ErrInvalid, name+"Last", fmt.Sprint(last), fmt.Sprintf("behind First and at most the number of fronts: %d to %d", first+1, fronts))
	}
	return nil
}

// checkNumber refuses what is not a number, too.
func checkNumber(name string, v, most float64, unit string) error {
	if v >= 0 && v <= most {
		return nil
	}
	return invalid.New(ErrInvalid, name, fmt.Sprint(v), fmt.Sprintf("0 to %s %s", short(most), unit))
}

func short(v float64) string {
	if v == math.Trunc(v) && v < 1e9 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprint(v)
}

func checkCurve(name string, curve, curves int) error {
	if curve < 0 || curve > curves {
		return invalid.New(ErrInvalid, name+"Curve", fmt.Sprint(curve), fmt.Sprintf("0 for none, or up to %d, the number of Curves", curves))
	}
	return nil
}

func orOne(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}

func orKilobyte(v float64) float64 {
	if v == 0 {
		return kilobyte
	}
	return v
}
