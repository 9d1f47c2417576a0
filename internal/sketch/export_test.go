package sketch

import "math"

// Quantile returns the number of a quantile; NaN if there is none.
func (s *Sketch) Quantile(q float64) float64 {
	key, _, ok := s.At(q)
	if !ok {
		return math.NaN()
	}
	return Middle(key)
}
