package buffer

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// together is a Sender that records the items of each row that it gets, with their coalesced ones.
type together struct {
	*service
	mu   sync.Mutex
	rows map[string][][]int
}

func (s *together) Send(ctx context.Context, items []*Item) Report {
	s.mu.Lock()
	for _, it := range items {
		var all []int
		for c := range it.Coalesced() {
			all = append(all, c.Work.(int))
		}
		s.rows[it.Key] = append(s.rows[it.Key], append(all, it.Work.(int)))
	}
	s.mu.Unlock()
	return s.service.Send(ctx, items)
}

// TestMergedItemsGoTogether checks that items that merge are sent in their order: all that wait for a row in one
// request, together again after a failure, and that they end together.
func TestMergedItemsGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := 2
		s := &together{rows: map[string][][]int{}, service: &service{t: t, takes: 50 * time.Millisecond}}
		s.verdict = func(it *Item) error {
			switch n := it.Work.(int); {
			case it.Key == "bad" && n > 0:
				return errBad
			case it.Key == "good" && n > 0 && fails > 0:
				fails--
				return errLost
			}
			return nil
		}
		q := New(s, options())
		var o outcomes
		o.t = t
		const n = 100
		for i := range n {
			for _, key := range []string{"good", "bad"} {
				it := item("acme", key)
				it.Alone, it.Merge, it.Work, it.Done = true, true, i, o.done
				if err := q.Enqueue(context.Background(), it); err != nil {
					t.Fatal(err)
				}
			}
			if i == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		if err := q.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if stored, bad := o.count(bt.Stored), o.count(bt.Rejected); stored != n+1 || bad != n-1 {
			t.Errorf("got %d stored and %d rejected", stored, bad)
		}
		for key, requests := range map[string]int{"good": 4, "bad": 2} {
			got := s.rows[key]
			if len(got) != requests {
				t.Fatalf("row %s: got %d requests, want %d", key, len(got), requests)
			}
			for i, all := range got[1:] {
				want := make([]int, n-1)
				for j := range want {
					want[j] = j + 1
				}
				if fmt.Sprint(all) != fmt.Sprint(want) {
					t.Errorf("row %s, request %d: got items %v", key, i+1, all)
				}
			}
		}
	})
}
