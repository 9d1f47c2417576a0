package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-go/tidemark/internal/engine"
)

// A folder that is no longer whole, or never was the engine's, is refused, and holds afterwards what it held before:
// the engine neither begins an empty store in place of a lost one, nor writes into another program's database.
func TestFoldersThatDoNotOpen(t *testing.T) {
	file := func(name, text string) func(*testing.T, vfs.FS) {
		return func(t *testing.T, fs vfs.FS) {
			f, err := fs.Create("db/"+name, vfs.WriteCategoryUnspecified)
			if err == nil {
				_, err = f.Write([]byte(text))
			}
			if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(kept ...string) func(*testing.T, vfs.FS) {
		return func(t *testing.T, fs vfs.FS) {
			names, err := fs.List("db")
			for _, name := range names {
				if !slices.Contains(kept, name) {
					err = errors.Join(err, fs.Remove("db/"+name))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	version := func(v uint32) func(*testing.T, vfs.FS) {
		return func(t *testing.T, fs vfs.FS) { engine.SetVersion(t, fs, "db", v) }
	}
	for name, tt := range map[string]struct {
		do   []func(*testing.T, vfs.FS)
		want error
	}{
		"as it was":                   {nil, nil},
		"the marker is lost":          {[]func(*testing.T, vfs.FS){func(_ *testing.T, fs vfs.FS) { _ = fs.Remove("db/TIDEMARK") }}, nil},
		"a marker of version 0":       {[]func(*testing.T, vfs.FS){file("TIDEMARK", "tidemark 0\n")}, engine.ErrDamaged},
		"a record of a later version": {[]func(*testing.T, vfs.FS){version(2)}, engine.ErrVersion},
		"no record of the version":    {[]func(*testing.T, vfs.FS){version(0)}, engine.ErrDamaged},
		"only the marker is left":     {[]func(*testing.T, vfs.FS){remove("TIDEMARK")}, engine.ErrDamaged},
		"a table file is lost": {[]func(*testing.T, vfs.FS){func(t *testing.T, fs vfs.FS) {
			names, err := fs.List("db")
			for _, name := range names {
				if strings.HasSuffix(name, ".sst") {
					err = errors.Join(err, fs.Remove("db/"+name))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}}, engine.ErrDamaged},
		"only a log is left":               {[]func(*testing.T, vfs.FS){remove(), file("000002.log", "")}, engine.ErrDamaged},
		"only a table file is left":        {[]func(*testing.T, vfs.FS){remove(), file("000004.sst", "")}, engine.ErrDamaged},
		"only a later manifest is left":    {[]func(*testing.T, vfs.FS){remove(), file("MANIFEST-000007", "")}, engine.ErrDamaged},
		"a crash at the first manifest":    {[]func(*testing.T, vfs.FS){remove(), file("MANIFEST-000001", "")}, nil},
		"another program's database":       {[]func(*testing.T, vfs.FS){remove(), foreign(1)}, engine.ErrForeign},
		"an empty database without tables": {[]func(*testing.T, vfs.FS){remove(), foreign(0)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			closed := func(e *engine.Engine, err error) error {
				if err == nil {
					err = e.Close()
				}
				return err
			}
			if err := closed(engine.Open(engine.Options{Dir: "db", FS: fs, GCInterval: -1})); err != nil {
				t.Fatal(err)
			}
			for _, do := range tt.do {
				do(t, fs)
			}
			for range 2 { // a refusal changes nothing
				if err := closed(engine.Open(engine.Options{Dir: "db", FS: fs, GCInterval: -1})); !errors.Is(err, tt.want) {
					t.Errorf("Open: %v, want %v", err, tt.want)
				}
			}
		})
	}
}

// foreign makes a database with some keys of another program.
func foreign(keys int) func(*testing.T, vfs.FS) {
	return func(t *testing.T, fs vfs.FS) {
		db, err := pebble.Open("db", &pebble.Options{FS: fs, Logger: quiet{}})
		if err != nil {
			t.Fatal(err)
		}
		for range keys {
			err = db.Set([]byte("key"), nil, pebble.Sync)
		}
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// quiet is a logger of Pebble that drops everything.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
