// Package luhn checks the check digit that payment cards and mobile phones have.
package luhn

// Valid reports whether the last of some decimal digits is the check digit of the others, which of random ones is so for one
// in ten.
func Valid[T ~string | ~[]byte](digits T) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}
