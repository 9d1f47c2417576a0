package window

import (
	"math"
	"math/big"
	"math/bits"
	"strings"
)

// decimal is an exact decimal number: a whole number of 128 bits, times a power of ten. The zero value is 0.
type decimal struct {
	hi       int64
	lo       uint64
	decimals uint8
}

// maxDecimals is the most decimal places of a measure.
const maxDecimals = 18

// newDecimal returns units times 10^-decimals. Decimals below 0 count as 0, and those above 18 as 18.
func newDecimal(units int64, decimals int) decimal {
	return decimal{hi: units >> 63, lo: uint64(units), decimals: uint8(min(max(decimals, 0), maxDecimals))}
}

// add returns d plus a number with the same decimals. A sum of numbers of 64 bits cannot overflow: that would take 2^63
// of them.
func (d decimal) add(o decimal) decimal {
	lo, carry := bits.Add64(d.lo, o.lo, 0)
	hi, _ := bits.Add64(uint64(d.hi), uint64(o.hi), carry)
	return decimal{hi: int64(hi), lo: lo, decimals: d.decimals}
}

// sub returns d minus a number with the same decimals.
func (d decimal) sub(o decimal) decimal {
	lo, borrow := bits.Sub64(d.lo, o.lo, 0)
	hi, _ := bits.Sub64(uint64(d.hi), uint64(o.hi), borrow)
	return decimal{hi: int64(hi), lo: lo, decimals: d.decimals}
}

// less reports whether d is less than a number with the same decimals.
func (d decimal) less(o decimal) bool { return d.hi < o.hi || d.hi == o.hi && d.lo < o.lo }

// units returns the whole number.
func (d decimal) units() *big.Int {
	n := new(big.Int).SetInt64(d.hi)
	return n.Lsh(n, 64).Add(n, new(big.Int).SetUint64(d.lo))
}

// rat returns the number for exact arithmetic.
func (d decimal) rat() *big.Rat {
	return new(big.Rat).SetFrac(d.units(), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.decimals)), nil))
}

// Float64 returns the float64 that is nearest to the number.
func (d decimal) Float64() float64 {
	const exact = 1 << 53
	if n := int64(d.lo); d.hi == n>>63 && -exact <= n && n <= exact {
		return float64(n) / math.Pow10(int(d.decimals)) // two exact numbers: the quotient is the nearest one
	}
	x, _ := d.rat().Float64()
	return x
}

// String returns all digits of the number: "-0.25". It has no zeros at the end of the decimal places.
func (d decimal) String() string {
	n := d.units()
	sign := ""
	if n.Sign() < 0 {
		sign = "-"
		n.Neg(n)
	}
	digits := n.String()
	if missing := int(d.decimals) + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	whole, part := digits[:len(digits)-int(d.decimals)], strings.TrimRight(digits[len(digits)-int(d.decimals):], "0")
	if part == "" {
		return sign + whole
	}
	return sign + whole + "." + part
}
