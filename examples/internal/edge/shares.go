package edge

import (
	"sync"

	"github.com/tidemark-go/tidemark/tenant"
)

// Shares divides a number of units, such as slots or bytes, among tenants. A tenant may hold at most seven times as
// many units as are free: one alone gets 7/8, and a second one always finds some. Shares is safe for concurrent use and
// remembers only tenants that hold units.
type Shares struct {
	mu   sync.Mutex
	free int64
	held map[tenant.ID]int64
}

// greed is the largest ratio of a tenant's units to the free ones.
const greed = 7

// NewShares returns shares of total units, at least 1.
func NewShares(total int64) *Shares {
	return &Shares{free: max(1, total), held: map[tenant.ID]int64{}}
}

// Take gives a tenant n units, and reports whether it could. A tenant that holds none may take the last ones.
func (s *Shares) Take(id tenant.ID, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held[id]
	if n > s.free || held > 0 && (held+n-1)/greed >= s.free-n {
		return false
	}
	s.free -= n
	s.held[id] = held + n
	return true
}

// Return frees units.
func (s *Shares) Return(id tenant.ID, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
	if s.held[id] -= n; s.held[id] <= 0 {
		delete(s.held, id)
	}
}
