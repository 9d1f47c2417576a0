package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestForecast(t *testing.T) {
	dir := filled(t, 10)
	out, _, err := tidectl(t, t.Context(), "", "--dir", dir, "-o", "text", "retention", "forecast", "--weeks", "3", "--set", "keep=maxage=1d")
	if want(t, 0, err, "forecast"); !strings.Contains(out, "All rows were counted") || !strings.Contains(out, "WEEK 3") || !strings.Contains(out, "would drop") {
		t.Errorf("the output is %s", out)
	}
	out, _, err = tidectl(t, t.Context(), "", "--dir", dir, "-o", "json", "retention", "forecast", "--set", "keep=maxage=1d")
	want(t, 0, err, "forecast as JSON")
	var got struct {
		Version  int
		Basis    string
		Holdings []struct{ Tenant string }
		Drops    []struct{ Cells float64 }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Version != 2 || got.Basis != "counted" || len(got.Holdings) != 2 || len(got.Drops) != 1 {
		t.Errorf("%s: %v", out, err)
	}
	for _, args := range [][]string{{"acme"}, {"--set", "keep"}, {"--set", "keep=never mind"}, {"--set", "keep=maxversions=3"}, {"--rows", "many"}} {
		_, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir, "retention", "forecast"}, args...)...)
		want(t, exitUsage, err, strings.Join(args, " "))
	}
	for _, args := range [][]string{{"--set", "other=maxage=1d"}, {"--rows", "5"}} {
		_, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir, "retention", "forecast"}, args...)...)
		want(t, exitFailed, err, strings.Join(args, " "))
	}
}
