package infile

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tidemark-go/tidemark/internal/instant"
)

// valueOf returns what makes a field of a value of a type, or nil if nothing does.
func valueOf(t parquet.Type) func(parquet.Value) any {
	if lt := t.LogicalType(); lt != nil {
		switch l := lt.Value.(type) {
		case *format.TimestampType:
			return timestamp(l)
		case *format.DateType:
			return func(v parquet.Value) any { return time.Unix(int64(v.Int32())*24*60*60, 0).UTC().Format(time.DateOnly) }
		case *format.TimeType:
			return clock(t.Kind(), l.Unit)
		case *format.DecimalType:
			return decimal(t.Kind(), int(l.Scale))
		case *format.IntType:
			if !l.IsSigned && t.Kind() == parquet.Int32 {
				return func(v parquet.Value) any { return v.Uint32() }
			} else if !l.IsSigned {
				return func(v parquet.Value) any { return v.Uint64() }
			}
		case *format.UUIDType:
			return uuid
		case *format.BsonType, *format.GeometryType, *format.GeographyType, *format.Float16Type, *format.VariantType:
			return nil
		}
	}
	switch t.Kind() {
	case parquet.Boolean:
		return func(v parquet.Value) any { return v.Boolean() }
	case parquet.Int32:
		return func(v parquet.Value) any { return v.Int32() }
	case parquet.Int64:
		return func(v parquet.Value) any { return v.Int64() }
	case parquet.Int96:
		return int96
	case parquet.Float: // with the digits that a float32 has
		return func(v parquet.Value) any {
			return float(strconv.ParseFloat(strconv.FormatFloat(float64(v.Float()), 'g', -1, 32), 64))
		}
	case parquet.Double:
		return func(v parquet.Value) any { return float(v.Double(), nil) }
	case parquet.ByteArray:
		return func(v parquet.Value) any {
			text := v.ByteArray()
			if utf8.Valid(text) {
				return string(text)
			}
			return text // bytes, which are left out and counted
		}
	}
	return nil
}

// float returns a number, or nothing for NaN and infinities.
func float(f float64, _ error) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return f
}

// wall is the form of a time without an offset.
const wall = "2006-01-02T15:04:05.999999999"

func timeText(at time.Time, inUTC bool) any {
	switch {
	case at.After(instant.Last) || at.Year() < 1:
		return nil
	case inUTC:
		return instant.Text(at)
	}
	return at.Format(wall)
}

func timestamp(t *format.TimestampType) func(parquet.Value) any {
	unit := unitOf(t.Unit)
	if unit == 0 {
		return nil
	}
	perSecond := int64(time.Second / unit)
	return func(v parquet.Value) any {
		n := v.Int64()
		return timeText(time.Unix(n/perSecond, n%perSecond*int64(unit)).UTC(), t.IsAdjustedToUTC)
	}
}

// unitOf returns the unit of a time, or 0.
func unitOf(u format.TimeUnit) time.Duration {
	switch u.Value.(type) {
	case *format.MilliSeconds:
		return time.Millisecond
	case *format.MicroSeconds:
		return time.Microsecond
	case *format.NanoSeconds:
		return time.Nanosecond
	}
	return 0
}

// clock returns the text of a time of the day.
func clock(kind parquet.Kind, u format.TimeUnit) func(parquet.Value) any {
	unit := unitOf(u)
	return func(v parquet.Value) any {
		n := v.Int64()
		if kind == parquet.Int32 {
			n = int64(v.Int32())
		}
		if unit == 0 || n < 0 || n > int64(24*time.Hour/unit) {
			return nil
		}
		return time.Unix(0, n*int64(unit)).UTC().Format("15:04:05.999999999")
	}
}

// int96 returns the text of a timestamp of older programs: nanoseconds of a day, and the Julian day.
func int96(v parquet.Value) any {
	const unixDay = 2440588
	n := v.Int96()
	nanos := int64(n[0]) | int64(n[1])<<32
	return timeText(time.Unix((int64(n[2])-unixDay)*24*60*60, 0).Add(time.Duration(nanos)).UTC(), true)
}

// maxScale bounds the digits after the point of a decimal.
const maxScale = 100

// decimal returns a number with all its digits.
func decimal(kind parquet.Kind, scale int) func(parquet.Value) any {
	if scale < 0 || scale > maxScale {
		return nil
	}
	return func(v parquet.Value) any {
		n := new(big.Int)
		switch kind {
		case parquet.Int32:
			n.SetInt64(int64(v.Int32()))
		case parquet.Int64:
			n.SetInt64(v.Int64())
		default:
			raw := v.ByteArray()
			if len(raw) > maxScale {
				return nil
			}
			if n.SetBytes(raw); len(raw) > 0 && raw[0] >= 0x80 { // two's complement
				n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(raw)*8)))
			}
		}
		digits := new(big.Int).Abs(n).String()
		if scale > 0 {
			if missing := scale + 1 - len(digits); missing > 0 {
				digits = strings.Repeat("0", missing) + digits
			}
			digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
		}
		if n.Sign() < 0 {
			digits = "-" + digits
		}
		return json.Number(digits)
	}
}

func uuid(v parquet.Value) any {
	b := v.ByteArray()
	if len(b) != 16 {
		return nil
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
