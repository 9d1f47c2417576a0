package spool_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// TestSnapshotIsOfOneMoment copies a journal that goes on, and reads the copy: it has what the journal had when
// Snapshot was called, but for records that were done.
func TestSnapshotIsOfOneMoment(t *testing.T) {
	ctx := t.Context()
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	s, err := spool.Open(dir, spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var want []string
	for i := range 30 { // several commits of the copy's size
		var records [][]byte
		for j := range 100 {
			records = append(records, fmt.Appendf(nil, "%05d %s", 100*i+j, strings.Repeat("x", 10_000)))
		}
		first, err := s.Append(ctx, records)
		if err != nil {
			t.Fatal(err)
		}
		for j, r := range records {
			if j%3 == 0 {
				s.Done(first + uint64(j))
				continue
			}
			want = append(want, string(r))
		}
	}
	if err := s.SetMeta(ctx, "name", []byte("value")); err != nil {
		t.Fatal(err)
	}
	if err := s.Bury(ctx, spool.Dead{Seq: 1, Reason: "refused"}); err != nil {
		t.Fatal(err)
	}
	want = want[1:]
	before, has := s.Stats(), spool.Stats{}
	err = s.Snapshot(func(copyTo func(string) (spool.Stats, error)) error {
		if _, err := s.Append(ctx, [][]byte{[]byte("later")}); err != nil {
			return err
		}
		has, err = copyTo(to)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := spool.Open(to, spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Stream() != s.Stream() || string(c.Metas()["name"]) != "value" || c.Stats().Dead != before.Dead {
		t.Errorf("the copy has the stream %s, the metas %v, %d dead letters; want %s, name, %d", c.Stream(), c.Metas(), c.Stats().Dead, s.Stream(), before.Dead)
	}
	if got := c.Stats().Next; got != before.Next+1<<32 {
		t.Errorf("the copy's next number is %d, want %d", got, before.Next+1<<32)
	}
	var got []string
	for from := uint64(0); ; {
		records, err := c.Read(ctx, from, 1000, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(records) == 0 {
			break
		}
		for _, r := range records {
			if strings.HasPrefix(string(r.Data), "later") {
				t.Error("the copy has a record from after its moment")
			}
			got, from = append(got, string(r.Data)), r.Seq+1
		}
	}
	missing := map[string]bool{}
	for _, w := range want {
		missing[w] = true
	}
	for _, g := range got {
		delete(missing, g)
	}
	if len(missing) > 0 || len(got) != has.Records || has.Dead != before.Dead {
		t.Errorf("%d of %d records are missing; the copy has %d and %d dead letters, want %d and %d", len(missing), len(want), len(got), before.Dead, has.Records, has.Dead)
	}
}

// TestSnapshotFailsAlone copies to a folder that cannot be made: the journal works on.
func TestSnapshotFailsAlone(t *testing.T) {
	s, err := spool.Open(t.TempDir(), spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Snapshot(func(copyTo func(string) (spool.Stats, error)) error {
		_, err := copyTo(filepath.Join(file, "in"))
		return err
	}); err == nil {
		t.Error("a folder was made in a file")
	}
	own := errors.New("of the caller")
	if err := s.Snapshot(func(func(string) (spool.Stats, error)) error { return own }); !errors.Is(err, own) {
		t.Errorf("got %v, want %v", err, own)
	}
	if _, err := s.Append(t.Context(), [][]byte{[]byte("x")}); err != nil {
		t.Error(err)
	}
}
