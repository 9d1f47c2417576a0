package main

import (
	"io"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/tsdb"
)

// TestJSONDefaultDatasets: messages of two devices stay apart under every path, whatever the rules are for lines and
// metrics.
func TestJSONDefaultDatasets(t *testing.T) {
	for _, args := range [][]string{nil, {"-key=*=host,*"}, {"-key=cpu=*"}, {"-key=cpu=zone?,host?"}, {"-key=*=*"}, {"-route=store cpu in cpu by zone?,*"}} {
		r := newRig(t, ample, args...)
		url := r.listen(t)
		for _, path := range []string{"metrics", "measurements", "cpu", "other"} {
			for _, body := range []string{
				`[{"device":"t1","time":1767225600,"temp":1},{"device":"t2","time":1767225600,"temp":2}]`,
				`[{"time":1767225601,"temp":1},{"time":1767225601,"temp":2}]`,
				`[{"measurement":"cpu","device":"t1","time":1767225602,"temp":1},{"measurement":"cpu","device":"t2","time":1767225602,"temp":2}]`,
			} {
				got := sendJSON(t, url+"/json/"+path, body)
				if n := r.messages.points; got.Stored != n {
					t.Errorf("%v, %s: %d messages of %s are said to be stored, as %d points", args, path, got.Stored, body, n)
				}
				r.messages = report{}
			}
		}
	}
}

// TestKeysOfAnyName: the names of tags that routes use otherwise are still keys of lines.
func TestKeysOfAnyName(t *testing.T) {
	for _, key := range []string{"cpu=tenant,host", "cpu=dataset", "*=tenant,*", "cpu=time,host"} {
		if _, err := parse([]string{"-token", "secret=acme", "-key", key}, io.Discard); err != nil {
			t.Errorf("-key %s: %v", key, err)
		}
	}
}

// TestArrivalOfMessages: messages of one device that arrive in one request are as many points.
func TestArrivalOfMessages(t *testing.T) {
	r := newRig(t, ample, "-route", "in/+device dataset=d key=device time=arrival")
	lines := strings.Repeat(`[{"x":1},{"x":2},{"x":null},{"x":3}]`+"\n", 20)
	sendJSON(t, r.listen(t)+"/json/in/t1", lines, ndjson).want(t, "arrays in lines", 200, 20, 0)
	seen := 0
	for _, err := range r.repository(t, "d", acme).Range(t.Context(), tsdb.NewEntity("t1"), tsdb.AllTime()) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
	}
	if seen != 60 {
		t.Errorf("%d points are stored, want 60", seen)
	}
}
