package keyadvice

import (
	"fmt"
	"math"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb/keys"
)

// shown returns a part for a message, or a placeholder if it looks personal.
func shown(part string) string {
	if keys.CheckPersonal("", part) != nil {
		return "a value that is not shown"
	}
	return invalid.Quote(part)
}

// rate returns a rate in points a second.
func rate(r float64) string {
	if r >= 10 {
		return strconv.FormatFloat(math.Round(r), 'f', -1, 64) + " points a second"
	}
	return strconv.FormatFloat(r, 'g', 2, 64) + " points a second"
}

// percent returns a part of a whole as a percentage.
func percent(part, whole float64) string {
	if whole <= 0 {
		return "0%"
	}
	return fmt.Sprintf("%.0f%%", 100*part/whole)
}

// counted returns n with the singular or plural noun.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// bytes returns a size as text.
func bytes[N int | float64](n N) string {
	switch f := float64(n); {
	case f >= 10<<20:
		return fmt.Sprintf("%.0f MiB", f/(1<<20))
	case f >= 10<<10:
		return fmt.Sprintf("%.0f KiB", f/(1<<10))
	}
	return fmt.Sprintf("%.0f bytes", float64(n))
}
