package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/examples/internal/app"
)

// TestRouteFlags: two rules for one dataset that differ are an error at the start that names both.
func TestRouteFlags(t *testing.T) {
	const telemetry = "-route=v1/+device dataset=telemetry key=device time=arrival"
	otlp := write(t, "store m.* in telemetry by resource.host.name\n")
	for _, tt := range []struct {
		args []string
		want string // in the error; empty for none
	}{
		{[]string{telemetry}, ""},
		{[]string{telemetry, "-key=cpu=host"}, ""},
		{[]string{telemetry, "-key=*=host,*"}, ""},
		{[]string{telemetry + " merge", "-key=telemetry=device"}, ""},
		{[]string{telemetry, "-key=telemetry=host"}, "a route says key=device for the dataset telemetry, and another rule says telemetry=host"},
		{[]string{telemetry, "-key=telemetry=device"}, "a route to the dataset telemetry does not say merge, and the rule telemetry=device"},
		{[]string{telemetry, "-otlp=" + otlp}, "telemetry=resource.host.name"},
		{[]string{"-route=+dataset/+device key=device time=arrival", "-key=*=host"}, "a route says key=device for the dataset *, and another rule says *=host"},
		{[]string{"-route=+dataset/+device key=device time=arrival", "-key=*=device"}, ""},
		{[]string{telemetry, "-routes=x"}, "exclude each other"},
		{[]string{"-routes=missing.txt"}, "missing.txt"},
		{[]string{"-route=v1 dataset=t"}, "line 1: key is missing"},
		{[]string{telemetry, "-file=x", "-tenant=acme"}, "-file and -route exclude each other"},
	} {
		args := tt.args
		if !strings.Contains(strings.Join(args, " "), "-file") {
			args = append([]string{"-token", "secret=acme"}, args...)
		}
		_, err := parse(args, io.Discard)
		_, usage := errors.AsType[app.UsageError](err)
		if tt.want == "" && err != nil || tt.want != "" && (!usage || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q: error %v, want one with %q", tt.args, err, tt.want)
		}
	}
}
