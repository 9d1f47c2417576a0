package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/parquet-go/parquet-go"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// withFarPoints returns the folder of a store in which a meter of acme has a point of 2026, one of 2400, and one of
// 58803 that writes accepted once.
func withFarPoints(t *testing.T, precision tsdb.Precision, heads int) string {
	t.Helper()
	dir := t.TempDir()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	far := tsdb.MustDefine("far", tsdb.Key("site", "meter"), codec.JSON[map[string]any](), tsdb.SchemaOptions{Precision: precision, Head: tsdb.Head{Points: heads}})
	err = store.Ensure(t.Context(), far)
	repo := far.For(store, tenant.MustParse("acme"))
	for i, at := range []time.Time{monday, time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)} {
		err = errors.Join(err, repo.Put(t.Context(), tsdb.NewEntity("berlin", "m1"), at, map[string]any{"kwh": i + 1, "mode": "on"}))
	}
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	at := time.Date(58803, 2, 28, 1, 2, 3, 0, time.UTC)
	units := at.UnixMicro()
	if precision == tsdb.Milliseconds {
		units = at.UnixMilli()
	}
	table(t, dir, func(table *bigtable.Table) {
		set := func(key, family string) {
			m := bigtable.NewMutation()
			m.Set(family, "p:json", bigtable.Timestamp(at.UnixMilli()*1000), []byte(`{"kwh":3,"mode":"off"}`))
			if err := table.Apply(t.Context(), key, m); err != nil {
				t.Fatal(err)
			}
		}
		set(fmt.Sprintf("acme#far#berlin#m1#%019d", int64(1<<63-1)-units), "keep")
		if heads > 0 {
			set("acme#far!head#berlin#m1#", fmt.Sprint("keep.h", heads))
		}
	})
	return dir
}

// TestPointsOfCenturies: every command answers where points are of the years 2400 and 58803. It prints times that it
// reads again, so that such points can be deleted.
func TestPointsOfCenturies(t *testing.T) {
	for name, dir := range map[string]string{
		"us": withFarPoints(t, tsdb.Microseconds, 0), "ms": withFarPoints(t, tsdb.Milliseconds, 0), "heads": withFarPoints(t, tsdb.Milliseconds, 2),
	} {
		t.Run(name, func(t *testing.T) {
			const entity = "far acme site=berlin meter=m1"
			const last = "+058803-02-28T01:02:03Z"
			ask := func(command string) string {
				t.Helper()
				out, remarks, err := tidectl(t, t.Context(), "", strings.Fields("--dir "+dir+" "+command)...)
				if err != nil {
					t.Errorf("%s: %v\n%s%s", command, err, out, remarks)
				}
				return out
			}
			for k, form := range []string{"text", "json", "csv"} {
				for _, command := range []string{
					"get " + entity, "latest " + entity, "latest far acme", "range far acme", "range --by time far acme site=berlin", "get --from " + last + " " + entity,
					"silent far acme --since +100000-01-01T00:00:00Z", "silent far acme --since +100000-01-01T00:00:00Z --limit 1",
				} {
					if out := ask("-o " + form + " " + command); !strings.Contains(out, last) {
						t.Errorf("%s in %s prints %s; want the time %s", command, form, out, last)
					}
				}
				for i, to := range []string{"2026-07-01", "2401-01-01", "+100000-01-01T00:00:00Z"} {
					for j, command := range []string{
						"windows --every 1mo --measure kwh --aggregate integral,delta,last", "windows --every 12mo --measure kwh:counter", "windows --every 9996mo --measure mode:state",
						"windows --every 9996mo --gaps linear --measure kwh",
						"outages --longer 1h", "groups --by site --every 600mo --measure kwh",
					} {
						if (i+j)%3 != k {
							continue // each command and interval in one of the forms
						}
						where := entity
						if strings.HasPrefix(command, "groups") {
							where = "far acme"
						}
						if out := ask(fmt.Sprintf("-o %s %s --from 1970-01-01 --to %s %s", form, command, to, where)); out == "" {
							t.Errorf("%s up to %s prints nothing", command, to)
						}
					}
				}
				if form != "csv" {
					ask("-o " + form + " tenants usage acme")
				}
			}
			exports(t, dir, last)
			parquets(t, dir, ask)
			for _, text := range []string{"2400-01-01", last} {
				ask("delete --yes --time " + text + " " + entity)
			}
			if out := ask("get " + entity); strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, "2026-06-01T12:00:00Z") {
				t.Errorf("after both are deleted, the meter has\n%s", out)
			}
			if out := ask("latest far acme"); !strings.HasPrefix(out, "2026-06-01T12:00:00Z") {
				t.Errorf("after both are deleted, the newest point is %s", out)
			}
		})
	}
}

// exports checks the exports of a whole tenant.
func exports(t *testing.T, dir, last string) {
	t.Helper()
	for format, want := range map[string]string{"ndjson": `"units":`, "csv": last, "parquet": "PAR1"} {
		file := filepath.Join(t.TempDir(), "far."+format)
		_, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--dataset", "far", "--format", format, "--file", file)
		out, rerr := os.ReadFile(file)
		if err != nil || rerr != nil || !strings.Contains(string(out), want) {
			t.Errorf("the export as %s: %v, %v\n%.500s\nwant %s in it", format, err, rerr, out, want)
		}
	}
}

// parquets reads the columns of times back.
func parquets(t *testing.T, dir string, ask func(string) string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "far.parquet")
	if err := os.WriteFile(file, []byte(ask("-o parquet range --oldest-first --limit 0 --measure kwh far acme")), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := parquet.NewReader(f)
	defer r.Close()
	var years []int
	for {
		row := map[string]any{}
		if r.Read(&row) != nil {
			break
		}
		units := row["time"].(int64)
		at := time.UnixMilli(units)
		if strings.Contains(r.Schema().String(), "unit=MICROS") {
			at = time.UnixMicro(units)
		}
		years = append(years, at.UTC().Year())
	}
	if fmt.Sprint(years) != "[2026 2400 58803]" {
		t.Errorf("the Parquet file has points of the years %v: %s", years, r.Schema())
	}
}

// TestDelete deletes points of an interval and one event of several at a time, and explains mistakes.
func TestDelete(t *testing.T) {
	dir := metered(t, 9)
	const m2 = "meters acme street=main meter=m2"
	for _, tt := range []struct {
		command, want string
		code          int
	}{
		{"delete " + m2, "give the --time of a point", exitUsage},
		{"delete --yes --time 2026-06-01T12:00 --from 2026-06-01 " + m2, "give the --time of a point", exitUsage},
		{"delete --yes --from 2026-06-01 --id a " + m2, "--id is for --time", exitUsage},
		{"delete --yes --time noon " + m2, "noon", exitUsage},
		{"delete --time 2026-06-01T12:00 " + m2, "no terminal to ask on", exitRefused},
		{"delete --yes --time 2026-06-01T12:01 " + m2, "not found", exitFailed},
		{"-o csv delete --yes --time 2026-06-01T12:00 " + m2, "want text or json", exitUsage},
	} {
		_, _, err := tidectl(t, t.Context(), "", strings.Fields("--dir "+dir+" "+tt.command)...)
		if want(t, tt.code, err, tt.command); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", tt.command, err, tt.want)
		}
	}
	out, _, err := tidectl(t, t.Context(), "", strings.Fields("--dir "+dir+" -o json delete --yes --from 2026-06-01T12:15 --to 2026-06-01T13:00 "+m2)...)
	var said struct{ Deleted int }
	if want(t, 0, err, "delete"); json.Unmarshal([]byte(out), &said) != nil || said.Deleted != 3 {
		t.Errorf("delete of an interval prints %s; want 3 points", out)
	}
	out, _, err = tidectl(t, t.Context(), "", strings.Fields("--dir "+dir+" get "+m2)...)
	if want(t, 0, err, "get"); strings.Count(out, "\n") != 6 {
		t.Errorf("after that the meter has\n%s\nwant 6 points", out)
	}
}
