package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

func TestAdviseByFile(t *testing.T) {
	var sequential, hot, even, levels strings.Builder
	for i := range 1000 {
		rate := 0.1
		if i >= 900 {
			rate = 40
		}
		fmt.Fprintf(&sequential, "acme order-%06d %v\n", i, rate)
		fmt.Fprintf(&levels, "acme zoo %d %v\n", i-500, rate)
		fmt.Fprintf(&even, "acme\tsite %d\troof-%d\t1\n", i%10, i)
	}
	hot.WriteString("# a comment\n\nacme berlin roof-0 7000\r\n")
	hot.WriteString("acme berlin roof-1 1\n")
	for _, tt := range []struct{ name, key, lines, want string }{
		{"sequential", "order", sequential.String(), "warning sequential"},
		{"hot", "site,device", hot.String(), "critical hot-entity"},
		{"even", "site,device", even.String(), ""},
		{"empty", "site", "", ""},
		{"kinds", "site,level:int4", levels.String(), "warning sequential"},
	} {
		out, _, err := tidectl(t, t.Context(), tt.lines, "-o", "json", "advise", tt.name, "--file", "-", "--key", tt.key)
		want(t, 0, err, tt.name)
		var got struct {
			Dataset string
			Advice  []struct{ Cause, Severity, Found, Why, Remedy string }
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || got.Dataset != tt.name || got.Advice == nil {
			t.Fatalf("%s: %s, %v", tt.name, out, err)
		}
		var found []string
		for _, a := range got.Advice {
			found = append(found, a.Severity+" "+a.Cause)
		}
		if strings.Join(found, ", ") != tt.want {
			t.Errorf("%s: found %q, want %q", tt.name, found, tt.want)
		}
	}
	file := filepath.Join(t.TempDir(), "orders")
	if err := os.WriteFile(file, []byte(sequential.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := tidectl(t, t.Context(), "", "advise", "orders", "--file", file, "--key", "order")
	if want(t, 0, err, "as text"); !strings.Contains(out, "warning: sequential\n") || !strings.Contains(out, "What helps: ") {
		t.Errorf("text output:\n%s", out)
	}
	out, _, err = tidectl(t, t.Context(), sequential.String(), "advise", "orders", "--file", "-", "--key", "order", "--salts", "50")
	if want(t, 0, err, "salted"); !strings.Contains(out, "warning: sequential\n") || !strings.Contains(out, "in each of 50 salts") {
		t.Errorf("output for a salted key:\n%s", out)
	}
}

// TestAdviseByPartOfTheEntities: a tenant's rate is scaled by the share of its entities in the file.
func TestAdviseByPartOfTheEntities(t *testing.T) {
	var lines strings.Builder
	for i := range 100 {
		fmt.Fprintf(&lines, "acme site-%d roof-%c%c 10\n", i%10, 'a'+i/26, 'a'+i%26)
	}
	advise := []string{"advise", "temps", "--file", "-", "--key", "site,device"}
	out, _, err := tidectl(t, t.Context(), lines.String(), advise...)
	if want(t, 0, err, "all entities"); !strings.Contains(out, "nothing to say") {
		t.Errorf("output for all entities:\n%s", out)
	}
	out, _, err = tidectl(t, t.Context(), lines.String(), append(advise, "--share", "0.05")...)
	if want(t, 0, err, "one in twenty"); !strings.Contains(out, "busy-tenant\n") || !strings.Contains(out, "20000 points a second") {
		t.Errorf("output for one entity in twenty:\n%s", out)
	}
	for _, share := range []string{"0", "-0.5", "1.01", "5", "NaN"} {
		_, _, err := tidectl(t, t.Context(), lines.String(), append(advise, "--share="+share)...)
		if want(t, exitUsage, err, share); err == nil || !strings.Contains(err.Error(), "--share is "+share+"; want above 0 and up to 1") {
			t.Errorf("--share %s: %v", share, err)
		}
	}
}

func TestAdviseByStore(t *testing.T) {
	dir := t.TempDir()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(t.Context(), temps); err != nil {
		t.Fatal(err)
	}
	for day := range 12 {
		e := tsdb.NewEntity(time.Date(2026, 1, 1+day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly))
		if err := temps.For(store, tenant.MustParse("acme")).Put(t.Context(), e, time.Now(), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	out, _, err := tidectl(t, t.Context(), "", "--dir", dir, "advise", "temps", "acme")
	if want(t, 0, err, "days"); !strings.Contains(out, "warning: time-first\n") {
		t.Errorf("output for a key with the day first:\n%s", out)
	}
	out, _, err = tidectl(t, t.Context(), "", "--dir", dir, "advise", "temps", "beta", "-o", "json")
	if want(t, 0, err, "nothing stored"); !strings.Contains(out, `"entities":0,"advice":[]`) {
		t.Errorf("output without stored data:\n%s", out)
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "advise", "none", "acme")
	want(t, exitFailed, err, "an unknown dataset")
}

func TestAdviseOnWrongCommandLines(t *testing.T) {
	for _, args := range [][]string{
		{"advise"},
		{"advise", "temps"},
		{"advise", "temps", "acme"},
		{"advise", "temps", "a#b"},
		{"advise", "temps", "acme", "more"},
		{"advise", "temps", "acme", "--key", "site"},
		{"advise", "temps", "acme", "--share", "0.5"},
		{"advise", "temps", "--file", "-"},
		{"advise", "temps", "--file", "-", "--key", "site", "--share", "half"},
		{"advise", "temps", "acme", "--file", "-", "--key", "site"},
		{"advise", "temps", "--file", "-", "--key", "site,site"},
		{"advise", "temps", "--file", "-", "--key", "site", "--salts", "1"},
		{"advise", "temps", "--file", "-", "--key", "site:number"},
		{"advise", "temps", "--file", "-", "--key", "site:uint"},
		{"advise", "temps", "--file", "-", "--key", "site", "--entities", "5"},
		{"advise", "te mps", "--file", "-", "--key", "site"},
		{"-o", "xml", "advise", "temps", "--file", "-", "--key", "site"},
	} {
		_, _, err := tidectl(t, t.Context(), "", args...)
		want(t, exitUsage, err, strings.Join(args, " "))
	}
	for _, lines := range []string{"acme", "a/b berlin", "acme berlin fast", "acme berlin 1 2", "acme berlin -1", "acme\tberlin\t"} {
		_, _, err := tidectl(t, t.Context(), "acme oslo 1\n"+lines, "advise", "temps", "--file", "-", "--key", "site")
		if want(t, exitFailed, err, lines); err == nil || !strings.Contains(err.Error(), "line 2") && !strings.Contains(err.Error(), "entity 1") {
			t.Errorf("%q: the error does not say where: %v", lines, err)
		}
	}
}
