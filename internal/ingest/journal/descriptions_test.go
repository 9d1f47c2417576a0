package journal

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// TestNumbersDoNotOverflow checks that a new description never gets the number of an existing one: stored records refer
// to descriptions by number.
func TestNumbersDoNotOverflow(t *testing.T) {
	s, err := spool.Open(t.TempDir(), spool.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := &Descriptions{spool: s}
	first, err := d.Number(t.Context(), "point", []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{math.MaxUint64 - 1, math.MaxUint64} {
		if err := s.SetMeta(t.Context(), Description{Kind: "event", Number: n}.Name(), []byte("b")); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := d.Number(t.Context(), "point", []byte("c")); err == nil {
		t.Errorf("got number %d, which another description has", n)
	}
	if n, err := d.Number(t.Context(), "point", []byte("a")); err != nil || n != first {
		t.Errorf("first description: got number %d (%v), want %d", n, err, first)
	}
}

// TestNumberOfAnUnsureDescription: the context of a first description ends while it is written, and a second one is
// written meanwhile. The second must not replace the first: a third caller may find the first, and use its number.
func TestNumberOfAnUnsureDescription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := make(chan chan struct{}, 1) // the commit of a dead letter waits until the channel in it is closed
		s, err := spool.Open(t.TempDir(), spool.Options{NoSync: true, Clock: func() time.Time {
			<-<-dead
			return time.Now()
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Append(t.Context(), [][]byte{{0}, {1}}); err != nil {
			t.Fatal(err)
		}
		d := &Descriptions{spool: s}
		bury := func(seq uint64) {
			go func() {
				if err := s.Bury(t.Context(), spool.Dead{Seq: seq}); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		first, second := make(chan struct{}), make(chan struct{})
		dead <- first
		begin := s.Stats().First
		bury(begin)

		ctx, cancel := context.WithCancel(t.Context())
		go func() { // in the second commit, with the second dead letter
			if _, err := d.Number(ctx, "point", []byte("a")); !errors.Is(err, spool.ErrUnsure) {
				t.Errorf("the context ended during the write: %v, want ErrUnsure", err)
			}
		}()
		bury(begin + 1)
		dead <- second
		close(first)
		synctest.Wait()
		cancel()
		synctest.Wait()

		go func() {
			if _, err := d.Number(t.Context(), "point", []byte("b")); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		close(second)
		synctest.Wait()
		texts := map[string]bool{}
		for have := range d.All() {
			texts[string(have.Text)] = true
		}
		if !texts["a"] || !texts["b"] {
			t.Errorf("the journal has the descriptions %v, want a and b", texts)
		}
	})
}
