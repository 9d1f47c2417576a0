package luhn

import (
	"fmt"
	"testing"
)

// TestValid: of ten numbers that differ in their last digit one is right.
func TestValid(t *testing.T) {
	for _, right := range []string{"4111111111111111", "378282246310005", "490154203237518", "79927398713"} {
		for d := range 10 {
			s := right[:len(right)-1] + fmt.Sprint(d)
			if got := Valid(s); got != (s == right) || Valid([]byte(s)) != got {
				t.Errorf("%s: %v", s, got)
			}
		}
	}
}
