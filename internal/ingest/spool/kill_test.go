package spool_test

import (
	"context"
	"flag"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

var (
	rounds = flag.Int("crash.rounds", 8, "how many times the writing process is killed")
	// childDir and childRun turn the test binary into a writing process.
	childDir = "TIDEMARK_SPOOL_DIR"
	childRun = "TIDEMARK_SPOOL_RUN"
)

// childOptions make the journal rewrite its file all the time.
func childOptions() spool.Options {
	return spool.Shrinking(spool.Options{MaxBytes: 8 << 20}, 512<<10)
}

// batch identifies one append: the run of the process, the goroutine, the append's number and its number of records.
type batch struct{ run, goroutine, n, size int }

// record returns the record at place i of a batch. The record contains its own name and a checksum.
func (b batch) record(i int) []byte {
	r := rand.New(rand.NewPCG(uint64(b.run)<<32|uint64(b.goroutine), uint64(b.n)<<32|uint64(i)))
	fill := make([]byte, r.IntN(400))
	if r.IntN(60) == 0 {
		fill = make([]byte, r.IntN(60_000))
	}
	for i := range fill {
		fill[i] = 'a' + byte(r.IntN(26))
	}
	text := fmt.Sprintf("%d %d %d %d %d %s", b.run, b.goroutine, b.n, b.size, i, fill)
	return []byte(fmt.Sprintf("%08x %s", crc32.ChecksumIEEE([]byte(text)), text))
}

func parseRecord(data []byte) (b batch, i int, err error) {
	sum, text, _ := strings.Cut(string(data), " ")
	if want := fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))); sum != want {
		return b, 0, fmt.Errorf("a record is incomplete: %.40q", data)
	}
	_, err = fmt.Sscan(text, &b.run, &b.goroutine, &b.n, &b.size, &i)
	return b, i, err
}

// child appends, delivers, buries and revives until it is killed. It prints each acknowledged call, and prints each
// call that removes a record before it makes the call.
func child(dir string) error {
	run, err := strconv.Atoi(os.Getenv(childRun))
	if err != nil {
		return err
	}
	s, err := spool.Open(dir, childOptions())
	if err != nil {
		return err
	}
	ctx := context.Background()
	var wg sync.WaitGroup
	failed := make(chan error, 8)
	goes := func(f func() error) {
		wg.Go(func() {
			for {
				if err := f(); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	for g := range 4 {
		n, r := 0, rand.New(rand.NewPCG(uint64(run), uint64(g)))
		goes(func() error {
			n++
			b := batch{run, g, n, 1 + r.IntN(1+g*20)}
			var records [][]byte
			for i := range b.size {
				records = append(records, b.record(i))
			}
			for {
				first, err := s.Append(ctx, records)
				if err == nil {
					fmt.Printf("append %d %d %d %d %d\n", first, b.run, b.goroutine, b.n, b.size)
					return nil
				}
				if err := s.Room(ctx, records); err != nil {
					return err
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(uint64(run), 99))
	goes(func() error {
		list, err := s.Read(ctx, 0, 1+r.IntN(500), 1<<20)
		if err != nil {
			return err
		}
		for _, rec := range list {
			switch r.IntN(400) {
			case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9: // Not delivered.
			case 10:
				fmt.Printf("bury %d\n", rec.Seq)
				if err := s.Bury(ctx, spool.Dead{Seq: rec.Seq}); err != nil {
					return err
				}
				fmt.Printf("buried %d\n", rec.Seq)
			default:
				fmt.Printf("done %d\n", rec.Seq)
				s.Done(rec.Seq)
			}
		}
		if r.IntN(20) != 0 {
			return nil
		}
		for d, err := range s.Dead(ctx) {
			if err != nil {
				return err
			}
			if r.IntN(3) == 0 {
				fmt.Printf("revive %d\n", d.Seq)
				if _, err := s.Revive(ctx, d.ID); err != nil {
					return err
				}
			}
		}
		return nil
	})
	goes(func() error {
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		return s.Scrub(ctx)
	})
	return <-failed
}

// ledger holds what the process printed: the acknowledged calls, and those that may have happened.
type ledger struct {
	appended map[uint64]batch // by the first sequence number
	done     map[uint64]bool  // Done may have been called
	bury     map[uint64]bool  // Bury may have been called
	buried   map[uint64]bool  // Bury was acknowledged
	revive   map[uint64]bool  // Revive may have been called, by the old sequence number
	records  int
}

func (l *ledger) enter(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	var first uint64
	var b batch
	if word == "append" {
		_, err := fmt.Sscan(rest, &first, &b.run, &b.goroutine, &b.n, &b.size)
		if old, twice := l.appended[first]; twice {
			return fmt.Errorf("sequence number %d was assigned to %v and to %v", first, old, b)
		}
		l.appended[first] = b
		l.records += b.size
		return err
	}
	set, ok := map[string]map[uint64]bool{"done": l.done, "bury": l.bury, "buried": l.buried, "revive": l.revive}[word]
	seq, err := strconv.ParseUint(rest, 10, 64)
	if !ok || err != nil {
		return fmt.Errorf("cannot read %q", line)
	}
	set[seq] = true
	return nil
}

// check opens the journal and compares it with the ledger.
func (l *ledger) check(t *testing.T, dir string) {
	t.Helper()
	s, err := spool.Open(dir, childOptions())
	if err != nil {
		t.Fatalf("opening the journal after a crash: %v", err)
	}
	defer s.Close()
	type place struct {
		batch
		i int
	}
	there, dead, seen := map[uint64]place{}, map[uint64]bool{}, map[place]uint64{}
	enter := func(seq uint64, data []byte, old bool) {
		b, i, err := parseRecord(data)
		if err != nil {
			t.Errorf("sequence %d: %v", seq, err)
			return
		}
		p := place{b, i}
		if other, twice := seen[p]; twice && other != seq {
			t.Errorf("record %v exists twice, at %d and %d", p, other, seq)
		}
		seen[p] = seq
		if !old {
			there[seq] = p
		}
	}
	last := int64(-1)
	for from := uint64(0); ; {
		list, err := s.Read(t.Context(), from, 1000, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		for _, r := range list {
			if int64(r.Seq) <= last {
				t.Errorf("got sequence number %d after %d", r.Seq, last)
			}
			last, from = int64(r.Seq), r.Seq+1
			enter(r.Seq, r.Data, false)
		}
	}
	for d, err := range s.Dead(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		dead[d.Seq] = true
		enter(d.Seq, d.Data, true)
		if !l.bury[d.Seq] {
			t.Errorf("sequence %d was never buried", d.Seq)
		}
	}
	for first, b := range l.appended {
		for i := range b.size {
			seq := first + uint64(i)
			p, ok := there[seq]
			switch {
			case ok && p != place{b, i}:
				t.Errorf("sequence %d holds %v, but was acknowledged for %v", seq, p, place{b, i})
			case !ok && !dead[seq] && !l.done[seq] && !l.revive[seq]:
				t.Errorf("sequence %d was acknowledged, was never done, and is missing", seq)
			case ok && l.buried[seq]:
				t.Errorf("sequence %d was acknowledged as buried and is back", seq)
			}
		}
	}
	l.checkUnanswered(t, func(yield func(uint64, batch, int)) {
		for seq, p := range there {
			yield(seq, p.batch, p.i)
		}
	})
}

// checkUnanswered looks at appends without an acknowledgement: all of their records exist, or none.
func (l *ledger) checkUnanswered(t *testing.T, each func(func(seq uint64, b batch, i int))) {
	t.Helper()
	answered, first, there := map[batch]bool{}, map[batch]uint64{}, map[uint64]bool{}
	found := map[batch]map[uint64]int{} // how many records say that the append began at a number
	for _, b := range l.appended {
		answered[b] = true
	}
	each(func(seq uint64, b batch, i int) {
		there[seq] = true
		if answered[b] {
			return
		}
		if found[b] == nil {
			found[b] = map[uint64]int{}
		}
		from := seq - uint64(i)
		found[b][from]++
		// A revived record has a greater number than in its append, so one record alone does not show where the append
		// began.
		if old, ok := first[b]; found[b][from] > 1 && (!ok || from < old) {
			first[b] = from
		}
	})
	for b, from := range first {
		for i := range b.size {
			if seq := from + uint64(i); !there[seq] && !l.done[seq] && !l.bury[seq] {
				t.Errorf("record %d of %v is missing, but others exist", i, b)
			}
		}
	}
}

// A process that is killed at any moment loses no acknowledged record, leaves none incomplete, assigns no sequence
// number twice, and forgets no record that was not delivered.
func TestKill(t *testing.T) {
	if testing.Short() && *rounds == 8 {
		*rounds = 2
	}
	dir := t.TempDir()
	l := &ledger{map[uint64]batch{}, map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}, 0}
	r := rand.New(rand.NewPCG(*seed, 3))
	for n := range *rounds {
		after := time.Duration(20+r.IntN(500)) * time.Millisecond
		if r.IntN(6) == 0 {
			after = time.Duration(r.IntN(30)) * time.Millisecond
		}
		testkit.KillAfter(t, after, l.enter, childDir+"="+dir, fmt.Sprintf("%s=%d", childRun, n))
		l.check(t, dir)
		if t.Failed() {
			t.Fatalf("failed in round %d of -spool.seed=%d", n, *seed)
		}
	}
	t.Logf("%d rounds: %d appends of %d records, %d done, %d buried, %d revived", *rounds, len(l.appended), l.records, len(l.done), len(l.buried), len(l.revive))
}
