package spool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

func open(t *testing.T, dir string, o spool.Options) *spool.Spool {
	t.Helper()
	s, err := spool.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func reopen(t *testing.T, s *spool.Spool, dir string, o spool.Options) *spool.Spool {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	return open(t, dir, o)
}

func appendAll(t *testing.T, s *spool.Spool, texts ...string) uint64 {
	t.Helper()
	var records [][]byte
	for _, text := range texts {
		records = append(records, []byte(text))
	}
	first, err := s.Append(t.Context(), records)
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// all returns the records to be delivered, as "seq:data".
func all(t *testing.T, s *spool.Spool) []string {
	t.Helper()
	var out []string
	for from := uint64(0); ; {
		records, err := s.Read(t.Context(), from, 100, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(records) == 0 {
			return out
		}
		for _, r := range records {
			out = append(out, fmt.Sprintf("%d:%s", r.Seq, r.Data))
			from = r.Seq + 1
		}
	}
}

func letters(t *testing.T, s *spool.Spool) []spool.DeadLetter {
	t.Helper()
	var out []spool.DeadLetter
	for d, err := range s.Dead(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

func want(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s = %q, want %q", what, got, want)
	}
}

func TestRecordsStayInOrderUntilTheyAreDone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, spool.Options{})
	if first := appendAll(t, s, "a", "", "c"); first != 0 {
		t.Errorf("first record: got sequence number %d, want 0", first)
	}
	if first := appendAll(t, s, "d"); first != 3 {
		t.Errorf("fourth record: got sequence number %d, want 3", first)
	}
	want(t, "records", all(t, s), []string{"0:a", "1:", "2:c", "3:d"})
	s.Done(1, 3, 3, 99)
	want(t, "records", all(t, s), []string{"0:a", "2:c"})
	stream := s.Stream()
	s = reopen(t, s, dir, spool.Options{})
	want(t, "records after a restart", all(t, s), []string{"0:a", "2:c"})
	if len(stream) != 32 || s.Stream() != stream {
		t.Errorf("after a restart: got stream %q, want %q, so that sequence numbers identify records", s.Stream(), stream)
	}
	if got := s.Stats(); got.Records != 2 || got.First != 0 || got.Next != 4 {
		t.Errorf("stats: %+v", got)
	}
	s.Done(0, 2)
	s = reopen(t, s, dir, spool.Options{})
	if first := appendAll(t, s, "e"); first != 4 {
		t.Errorf("empty journal: got sequence number %d, want 4", first)
	}
	want(t, "records", all(t, s), []string{"4:e"})
	if got := s.Stats(); got.Records != 1 || got.First != 4 || got.Next != 5 {
		t.Errorf("stats: %+v", got)
	}
}

func TestReadBounds(t *testing.T) {
	s := open(t, t.TempDir(), spool.Options{NoSync: true})
	big := strings.Repeat("x", 40<<10)
	appendAll(t, s, "a", big, "b", "c", big, "d")
	for _, tt := range []struct {
		from           uint64
		records, bytes int
		want           []uint64
	}{
		{0, 1, 1 << 20, []uint64{0}},
		{1, 10, 1, []uint64{1}},
		{2, 2, 1 << 20, []uint64{2, 3}},
		{2, 10, 2, []uint64{2, 3}},
		{0, 10, 1 << 20, []uint64{0, 1, 2, 3, 4, 5}},
		{6, 10, 1 << 20, nil},
	} {
		records, err := s.Read(t.Context(), tt.from, tt.records, tt.bytes)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for _, r := range records {
			got = append(got, r.Seq)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("Read(%d, %d, %d) = %d, want %d", tt.from, tt.records, tt.bytes, got, tt.want)
		}
	}
}

func TestDeadLetters(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1_700_000_000, 5)
	o := spool.Options{Clock: func() time.Time { return now }}
	s := open(t, dir, o)
	appendAll(t, s, "a", "b", "c", "d")
	s.Done(3)
	err := s.Bury(t.Context(), spool.Dead{Seq: 1, Reason: "bad family", Attempts: 3}, spool.Dead{Seq: 2, Data: []byte("C")}, spool.Dead{Seq: 2}, spool.Dead{Seq: 3})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "records", all(t, s), []string{"0:a"})
	s = reopen(t, s, dir, o)
	want(t, "records", all(t, s), []string{"0:a"})
	got := letters(t, s)
	if len(got) != 2 || got[0].Seq != 1 || got[0].Reason != "bad family" || got[0].Attempts != 3 || string(got[0].Data) != "b" ||
		!got[0].Time.Equal(now) || got[1].Seq != 2 || string(got[1].Data) != "C" {
		t.Fatalf("dead letters: %+v", got)
	}
	if st := s.Stats(); st.Dead != 2 || st.DeadBytes == 0 || st.Bytes <= st.DeadBytes {
		t.Errorf("stats: %+v", st)
	}
	if n, err := s.Revive(t.Context(), got[1].ID, 77, got[0].ID, got[0].ID); n != 2 || err != nil {
		t.Errorf("Revive = %d, %v, want 2", n, err)
	}
	want(t, "records", all(t, s), []string{"0:a", "4:C", "5:b"})
	if err := s.Bury(t.Context(), spool.Dead{Seq: 4}); err != nil {
		t.Fatal(err)
	}
	if again := letters(t, s); len(again) != 1 || again[0].ID <= got[1].ID {
		t.Errorf("dead letters: %+v", again)
	} else if n, err := s.Drop(t.Context(), again[0].ID, again[0].ID); n != 1 || err != nil {
		t.Errorf("Drop = %d, %v, want 1", n, err)
	}
	s = reopen(t, s, dir, o)
	want(t, "records", all(t, s), []string{"0:a", "5:b"})
	if st := s.Stats(); st.Dead != 0 || st.DeadBytes != 0 {
		t.Errorf("stats: %+v", st)
	}
	if err := s.Bury(t.Context(), spool.Dead{Seq: 6}); !errors.Is(err, spool.ErrInvalid) {
		t.Errorf("Bury of a record that was never appended: got %v, want ErrInvalid", err)
	}
}

// TestBuryingDeliveredRecords checks that Bury ignores a record that was delivered long ago and is no longer in the
// file.
func TestBuryingDeliveredRecords(t *testing.T) {
	s := open(t, t.TempDir(), spool.Options{NoSync: true})
	for range 3 {
		appendAll(t, s, strings.Repeat("x", 10<<10))
	}
	s.Done(1)
	appendAll(t, s, "y") // Removes the block.
	if err := s.Bury(t.Context(), spool.Dead{Seq: 1}, spool.Dead{Seq: 3}); err != nil {
		t.Error(err)
	}
	if got := letters(t, s); len(got) != 1 || got[0].Seq != 3 {
		t.Errorf("dead letters: %+v", got)
	}
	if st := s.Stats(); st.Records != 2 {
		t.Errorf("stats: %+v", st)
	}
}

func TestMetas(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, spool.Options{})
	for _, m := range [][2]string{{"a", "1"}, {"b", ""}, {"a", "2"}, {"c", "3"}} {
		if err := s.SetMeta(t.Context(), m[0], []byte(m[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetMeta(t.Context(), "c", nil); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s, dir, spool.Options{})
	got := s.Metas()
	if empty, ok := got["b"]; len(got) != 2 || string(got["a"]) != "2" || !ok || len(empty) != 0 {
		t.Errorf("metas: %q", got)
	}
	if err := s.SetMeta(t.Context(), "", nil); !errors.Is(err, spool.ErrInvalid) {
		t.Errorf("empty name: got %v", err)
	}
}

func TestInvalidInput(t *testing.T) {
	if _, err := spool.Open(t.TempDir(), spool.Options{MaxBytes: -1}); !errors.Is(err, spool.ErrInvalid) {
		t.Errorf("negative MaxBytes: got %v", err)
	}
	s := open(t, t.TempDir(), spool.Options{MaxBytes: 1 << 20, NoSync: true})
	for name, records := range map[string][][]byte{
		"no record": nil, "more than the limit": {make([]byte, 1<<20)}, "a huge record": {make([]byte, 33<<20)},
	} {
		if _, err := s.Append(t.Context(), records); !errors.Is(err, spool.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Read(t.Context(), 0, 0, 1); !errors.Is(err, spool.ErrInvalid) {
		t.Errorf("Read of no records: got %v", err)
	}
	if err := s.Bury(t.Context(), spool.Dead{Seq: 0}); !errors.Is(err, spool.ErrInvalid) {
		t.Errorf("Bury of a record that does not exist: got %v", err)
	}
}

// A journal refuses appends at its limit, and accepts more as soon as something is delivered.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir(), spool.Options{MaxBytes: 256 << 10, NoSync: true})
		record := [][]byte{make([]byte, 1000)}
		n := uint64(0)
		for ; ; n++ {
			if _, err := s.Append(t.Context(), record); errors.Is(err, spool.ErrFull) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if st := s.Stats(); st.Bytes > st.Limit || st.Bytes < st.Limit*9/10 || n < 240 {
			t.Errorf("got a full journal with %d records and %d of %d bytes", n, st.Bytes, st.Limit)
		}
		if err := s.Bury(t.Context(), spool.Dead{Seq: 5}); err != nil {
			t.Errorf("Bury on a full journal: got %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Room(ctx, record); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Room on a full journal: got %v", err)
		}
		waited := make(chan error)
		go func() { waited <- s.Room(t.Context(), record) }()
		synctest.Wait()
		start := time.Now()
		for seq := range n / 2 {
			s.Done(seq)
		}
		if err := <-waited; err != nil || !time.Now().Equal(start) {
			t.Errorf("Room: got %v after %v, want no wait for the disk", err, time.Since(start))
		}
		if _, err := s.Append(t.Context(), record); err != nil {
			t.Errorf("append after Room: got %v", err)
		}
	})
}

// TestMarksAreWrittenInTheBackground checks that done marks reach the disk soon even if nothing else is written.
func TestMarksAreWrittenInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir, spool.Options{NoSync: true})
		appendAll(t, s, "a", "b", "c")
		s.Done(1)
		time.Sleep(time.Second)
		copied := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		want(t, "records after a crash of the process", all(t, open(t, copied, spool.Options{NoSync: true})), []string{"0:a", "2:c"})
	})
}

func TestClosed(t *testing.T) {
	s := open(t, t.TempDir(), spool.Options{})
	appendAll(t, s, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: got %v", err)
	}
	s.Done(0)
	for name, err := range map[string]error{
		"Append": second(s.Append(t.Context(), [][]byte{{1}})), "Read": second(s.Read(t.Context(), 0, 1, 1)),
		"Bury": s.Bury(t.Context(), spool.Dead{}), "Revive": second(s.Revive(t.Context(), 1)), "Drop": second(s.Drop(t.Context(), 1)),
		"SetMeta": s.SetMeta(t.Context(), "a", nil), "Room": s.Room(t.Context(), [][]byte{{1}}),
	} {
		if !errors.Is(err, spool.ErrClosed) {
			t.Errorf("%s after Close: got %v, want ErrClosed", name, err)
		}
	}
	for _, err := range s.Dead(t.Context()) {
		if !errors.Is(err, spool.ErrClosed) {
			t.Errorf("Dead after Close: got %v, want ErrClosed", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestOpening(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "folder")
	s := open(t, dir, spool.Options{})
	if _, err := spool.Open(dir, spool.Options{}); !errors.Is(err, spool.ErrLocked) {
		t.Errorf("second Open of the folder: got %v, want ErrLocked", err)
	}
	for name, mode := range map[string]os.FileMode{".": 0o700, "journal.db": 0o600, "lock": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: got mode %v, %v, want no access for others", name, info.Mode(), err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "journal.db")
	for _, d := range []string{file, filepath.Join(file, "below")} {
		if _, err := spool.Open(d, spool.Options{}); err == nil || errors.Is(err, spool.ErrDamaged) {
			t.Errorf("file instead of a folder: got %v", err)
		}
	}
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := spool.Open(dir, spool.Options{}); !errors.Is(err, spool.ErrDamaged) || !strings.Contains(err.Error(), "journal.db") {
		t.Errorf("empty file: got %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := spool.Open(dir, spool.Options{}); !errors.Is(err, spool.ErrDamaged) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("missing file: got %v", err)
	}
	// A crash during the creation of a journal.
	if err := os.Truncate(filepath.Join(dir, "lock"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "journal.tmp"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	appendAll(t, open(t, dir, spool.Options{}), "a")
}

// TestGivingUp checks that a call that gave up before its commit began changed nothing.
func TestGivingUp(t *testing.T) {
	s := open(t, t.TempDir(), spool.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Append(ctx, [][]byte{{1}}); !errors.Is(err, context.Canceled) || errors.Is(err, spool.ErrUnsure) {
		t.Errorf("append with an ended context: got %v", err)
	}
	if st := s.Stats(); st.Next != 0 {
		t.Errorf("stats: %+v", st)
	}
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
