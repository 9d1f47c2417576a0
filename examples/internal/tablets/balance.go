package tablets

import (
	"cmp"
	"slices"
	"time"
)

// round measures the tablets, splits and merges them, and moves some from hot servers to others.
func (s *simulation) round(n int) {
	stored := 0.0
	for _, list := range [2][]*tablet{s.live, s.old} {
		for _, t := range list {
			t.load, t.wanted = t.spent/s.sinceRound, t.asked/s.sinceRound
			t.spent, t.asked = 0, 0
			stored += t.bytes
			if t.load > s.assume.SplitLoad {
				t.hot += s.sinceRound
			} else {
				t.hot = 0
			}
			if t.load < s.assume.SplitLoad*s.assume.MergeBelow && t.bytes < s.assume.SplitBytes*s.assume.MergeBelow {
				t.cold += s.sinceRound
			} else {
				t.cold = 0
			}
			s.record.measured(n, t)
		}
	}
	s.setSplitBytes(stored)
	after := s.assume.SplitAfter.Seconds()
	s.splitAll(func(t *tablet) bool { return t.hot >= after-1e-9 })
	s.live = s.merge(s.live)
	s.old = s.merge(s.old)
	if s.elapsed[0] >= s.nextOld {
		s.spreadOldReads()
	}
	s.balance()
}

// splitAll splits each tablet that is hot once, and each that is too large until it is not.
func (s *simulation) splitAll(hot func(t *tablet) bool) {
	count := len(s.live) + len(s.old)
	live := make([]*tablet, 0, len(s.live)+16)
	for _, t := range s.live {
		live = s.splitOne(t, hot(t), &count, live)
	}
	s.live = live
	for i := 0; i < len(s.old) && count < maxTablets; i++ { // those that are added are looked at, too
		for t := s.old[i]; (t.bytes > s.splitBytes || hot(t)) && count < maxTablets; count++ {
			s.old = append(s.old, s.splitOld(t))
		}
	}
}

// splitOne splits a live tablet and appends its parts.
func (s *simulation) splitOne(t *tablet, hot bool, count *int, to []*tablet) []*tablet {
	for (hot || t.bytes > s.splitBytes) && *count < maxTablets {
		w := s.storing()
		if hot {
			w = s.working()
		}
		at, ok := s.cut(w, t.first, t.last)
		ok = ok && (hot || t.left < t.bytes/2)
		switch {
		case ok:
			right := s.split(t, at)
			*count++
			if !hot {
				to = s.splitOne(t, false, count, to)
				t = right
				continue
			}
			to = s.splitOne(t, false, count, to)
			return s.splitOne(right, false, count, to)
		case t.bytes > s.splitBytes || hot && t.oldLoad() > 0.5 && t.bytes > 0:
			s.old = append(s.old, s.splitOld(t))
			*count++
		default:
			return append(to, t)
		}
		hot = false
	}
	return append(to, t)
}

// merge joins neighbours that have been cold for long.
func (s *simulation) merge(list []*tablet) []*tablet {
	after := s.assume.MergeAfter.Seconds()
	kept := list[:0]
	for _, t := range list {
		if len(kept) > 0 {
			if last := kept[len(kept)-1]; s.mergeable(last, t, after) {
				last.bytes += t.bytes
				last.left += t.left
				last.load += t.load
				last.wanted += t.wanted
				last.oldReads = append(last.oldReads, t.oldReads...)
				if !t.old {
					last.last = t.last
					last.rates = s.ratesOf(last.first, last.last)
				}
				s.merges++
				continue
			}
		}
		kept = append(kept, t)
	}
	clear(list[len(kept):])
	return kept
}

func (s *simulation) mergeable(a, b *tablet, after float64) bool {
	return a.cold >= after && b.cold >= after &&
		(!a.old || a.first == b.first && a.last == b.last) &&
		a.load+b.load < s.assume.SplitLoad*s.assume.MergeBelow &&
		a.bytes+b.bytes < s.assume.SplitBytes*s.assume.MergeBelow
}

// balance moves tablets from the servers with the most load to those with the least. Of a server it moves the tablet
// that evens out the two best, and none that would make the other as hot.
func (s *simulation) balance() {
	if len(s.servers) == 1 {
		return
	}
	on := make([][]*tablet, len(s.servers))
	for i := range s.servers {
		s.servers[i].load = 0
	}
	for _, list := range [2][]*tablet{s.live, s.old} {
		for _, t := range list {
			s.servers[t.server].load += t.load
			if t.load > 0 && t.offline == 0 {
				on[t.server] = append(on[t.server], t)
			}
		}
	}
	order := make([]int, len(s.servers)) // the coldest first
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.servers[a].load, s.servers[b].load) })
	givers := slices.Clone(order)
	slices.Reverse(givers)
	for _, from := range givers {
		for range int(s.assume.Moves) {
			to := order[0]
			gap := s.servers[from].load - s.servers[to].load
			if to == from || gap <= s.assume.Tolerance {
				break
			}
			best := -1
			for i, t := range on[from] {
				if t.load < gap && (best < 0 || abs(t.load-gap/2) < abs(on[from][best].load-gap/2)) {
					best = i
				}
			}
			if best < 0 {
				break
			}
			t := on[from][best]
			on[from] = slices.Delete(on[from], best, best+1)
			t.server, t.offline = to, s.assume.MoveTime.Seconds()
			s.servers[from].load -= t.load
			s.servers[to].load += t.load
			s.moves++
			for i := 0; i+1 < len(order) && s.servers[order[i]].load > s.servers[order[i+1]].load; i++ {
				order[i], order[i+1] = order[i+1], order[i]
			}
		}
	}
}

func abs(v float64) float64 { return max(v, -v) }

// at returns the time of a step after the start of the simulation without its warm part, which is negative in that.
func (s *simulation) at(n int) time.Duration {
	return time.Duration(n-s.warmSteps) * s.options.Step
}
