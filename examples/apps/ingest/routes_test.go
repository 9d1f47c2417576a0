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
	const store = "-route=store m.* in telemetry by resource.host.name"
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
		{[]string{telemetry, store}, "the dataset telemetry is named by a store line and by a route"},
		{[]string{store, "-key=telemetry=device"}, "telemetry=device"},
		{[]string{store, "-route=store * in rest by measurement,*", "-route=drop url"}, ""},
		{nil, ""},
		{[]string{"-route=+dataset/+device key=device time=arrival", "-key=*=host"}, "a route says key=device for the dataset *, and another rule says *=host"},
		{[]string{"-route=+dataset/+device key=device time=arrival", "-key=*=device"}, ""},
		{[]string{telemetry, "-routes=x"}, "exclude each other"},
		{[]string{"-routes=missing.txt"}, "missing.txt"},
		{[]string{"-route=v1 dataset=t"}, "line 1: key is missing"},
		{[]string{"-route=store * in rest by measurement,*", "-file=x", "-tenant=acme"}, ""},
		{[]string{"-key=cpu=host?", "-route=drop ho*"}, "ho* drops the attribute host, which is part of the key of cpu"},
		{[]string{"-key=*=zone,*", "-route=drop zone"}, "zone drops the attribute zone, which is part of the key of *"},
		{[]string{"-key=cpu=host,*", "-route=drop url"}, ""},
		{[]string{"-route=a format=line key=host?,* time=ns", "-route=drop host"}, "host drops the attribute host, which is part of the key of *"},
		{[]string{"-route=v1/+device dataset=d key=device time=arrival", "-route=drop device"}, ""}, // JSON has no tags
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

// TestWithoutRules: without -key and routes, lines of any measurement, metrics and messages are stored.
func TestWithoutRules(t *testing.T) {
	r := newRig(t, ample)
	lines := "node_disk_discard_time_seconds_total,host=a,dev=sda counter=1 1767225600000000000\n" +
		"°C,host=a value=21.5 1767225600000000000\nkm/h value=3 1767225600000000000\n" + strings.Repeat("x", 255) + " value=4 1767225600000000000"
	want(t, "lines", r.post(v2, lines), 204)
	r.stored(t, "measurements", acme, start, "{counter=1}", "node_disk_discard_time_seconds_total", "dev=sda,host=a")
	r.stored(t, "measurements", acme, start, "{value=21.5}", "°C", "host=a")
	r.stored(t, "measurements", acme, start, "{value=3}", "km/h", "-")
	r.stored(t, "measurements", acme, start, "{value=4}", strings.Repeat("x", 255), "-")
	want(t, "JSON", r.post("/json/telemetry", `{"device":"t1","time":1767225600,"temp":1}`), 200)
	r.stored(t, "telemetry", acme, start, "{temp=1i}", "t1")
	r.sendAll(t, request(gauge("m.g", number(1))))
	r.stored(t, "metrics", acme, start, "{m.g=1i}", "-", "resource.host.name=a,resource.process.pid=7")
}
