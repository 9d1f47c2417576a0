package main

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/examples/internal/app"
)

// TestFlags: a mistake on the command line is an error that names the flag, and not a service that stores nothing.
func TestFlags(t *testing.T) {
	const route = "-route=v1/+tenant/+device dataset=t key=device time=arrival"
	for _, test := range []struct {
		args []string
		want string // in the error; empty for none
	}{
		{[]string{route}, ""},
		{[]string{"-routes=routes.txt"}, ""},
		{[]string{route, "-tenants=acme,globex", "-keep=maxage=30d", "-receive-maximum=20"}, ""},
		{nil, "no -route"},
		{[]string{"-routes=missing.txt"}, "missing.txt"},
		{[]string{route, "-routes=routes.txt"}, "exclude"},
		{[]string{"-route=v1/+device dataset=t"}, "line 1: key is missing"},
		{[]string{route, "-cloud", "-dir=x"}, "-cloud"},
		{[]string{route, "-dir="}, "-dir"},
		{[]string{route, "-journal="}, "-journal"},
		{[]string{route, "-keep=sometimes"}, "-keep"},
		{[]string{route, "-receive-maximum=0"}, "receive-maximum"},
		{[]string{route, "-session=0"}, "-session"},
		{[]string{route, "-max-payload=0"}, "-max-payload"},
		{[]string{route, "-deadline=0"}, "-deadline"},
		{[]string{route, "-drain=0"}, "-drain"},
		{[]string{route, "-max-future=-1s"}, "-max-future"},
		{[]string{route, "-not-before=soon"}, "-not-before"},
		{[]string{route, "-tenant=username"}, "-username"},
		{[]string{route, "-tenant=certificate"}, "-cert"},
		{[]string{route, "-tenant=a b"}, "-tenant"},
		{[]string{route, "-tenants=acme,"}, "-tenants"},
		{[]string{route, "-cert=c.pem"}, "mqtts://"},
		{[]string{route, "-password-file=missing.txt"}, "-password-file"},
		{[]string{route, "x"}, `"x"`},
	} {
		_, err := parse(test.args, t.Output())
		_, usage := errors.AsType[app.UsageError](err)
		if test.want == "" && err != nil || test.want != "" && (!usage || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%q: error %v, want one with %q", test.args, err, test.want)
		}
	}
	if _, err := parse([]string{"-help"}, t.Output()); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-help: %v", err)
	}
}
