package keys

import (
	"fmt"
	"testing"
)

// TestLuhn: of ten numbers that differ in their last digit, one is valid.
func TestLuhn(t *testing.T) {
	for _, right := range []string{"4111111111111111", "378282246310005", "490154203237518", "79927398713"} {
		for d := range 10 {
			s := right[:len(right)-1] + fmt.Sprint(d)
			if got := luhn([]byte(s)); got != (s == right) {
				t.Errorf("luhn(%q) = %v, want %v", s, got, s == right)
			}
		}
	}
}
