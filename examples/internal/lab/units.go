package lab

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The texts of a file's values. Each says what is allowed where the text is something else.

// parseDuration reads a duration with a unit: "90s", "15m", "24h", "30d".
func parseDuration(text string) (time.Duration, error) {
	if n, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.ParseFloat(n, 64); err == nil && math.Abs(days) < 100_000 {
			return time.Duration(days * float64(day)), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("a number with a unit: ms, s, m, h or d, such as 90s or 24h")
	}
	return d, nil
}

// parseCount reads a whole number: "1000", "1_000_000", "10k", "2M".
func parseCount(text string) (int, error) {
	number, times := strings.ReplaceAll(text, "_", ""), 1.0
	if cut, ok := strings.CutSuffix(number, "k"); ok {
		number, times = cut, 1e3
	} else if cut, ok := strings.CutSuffix(number, "M"); ok {
		number, times = cut, 1e6
	}
	x, err := strconv.ParseFloat(number, 64)
	if x *= times; err != nil || x != math.Trunc(x) || math.Abs(x) > 1e15 {
		return 0, errors.New("a whole number, such as 5000, 1_000_000, 10k or 2M")
	}
	return int(x), nil
}

// parseBytes reads a size: "200", "200 B", "1.5 KB", "64 KiB", "1 MB".
func parseBytes(text string) (int, error) {
	number, times := text, 1.0
	for _, unit := range []struct {
		name  string
		bytes float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"KB", 1e3}, {"MB", 1e6}, {"B", 1}} {
		if cut, ok := strings.CutSuffix(text, unit.name); ok {
			number, times = cut, unit.bytes
			break
		}
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(x) || math.Abs(x) > 1e15 {
		return 0, errors.New("a number of bytes, such as 200, 200 B, 2 KB or 64 KiB")
	}
	return int(x * times), nil
}

// parseRate reads how often something happens: "100/s", "30/m", "1/h". It returns the rate of a second.
func parseRate(text string) (float64, error) {
	number, unit, _ := strings.Cut(text, "/")
	per := map[string]float64{"s": 1, "m": 60, "h": 3600, "d": 86400}[strings.TrimSpace(unit)]
	x, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(number), "_", ""), 64)
	if err != nil || per == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, errors.New("a rate per s, m, h or d, such as 100/s or 30/m")
	}
	return x / per, nil
}

// parsePercent reads a share: "60%". It returns it as a part of 1.
func parsePercent(text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !ok || math.IsNaN(x) {
		return 0, errors.New("a percentage, such as 60%")
	}
	return x / 100, nil
}

func parseNumber(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) {
		return 0, errors.New("a number, such as 1.2")
	}
	return x, nil
}

// shownDuration is a duration in the file's notation.
func shownDuration(d time.Duration) string {
	switch {
	case d >= day && d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

func shownPercent(x float64) string { return strconv.FormatFloat(x*100, 'g', 6, 64) + "%" }

func shownRate(x float64) string {
	switch {
	case x >= 1:
		return strconv.FormatFloat(x, 'g', 10, 64) + "/s"
	case x*60 >= 1:
		return strconv.FormatFloat(x*60, 'g', 6, 64) + "/m"
	}
	return strconv.FormatFloat(x*3600, 'g', 6, 64) + "/h"
}
