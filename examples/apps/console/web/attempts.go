package web

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// attemptsPerMinute is how many wrong tokens an address may send in a minute, and allAttempts how many all
	// addresses may.
	attemptsPerMinute = 10
	allAttempts       = 1_000
)

// attempts counts wrong tokens by the addresses of clients: single ones of IPv4, networks of 64 bits of IPv6. It
// forgets all of them each minute. So it holds at most 1,000 addresses.
type attempts struct {
	mu   sync.Mutex
	from time.Time
	all  int
	by   map[netip.Prefix]int
}

func newAttempts() *attempts { return &attempts{by: map[netip.Prefix]int{}} }

// may returns how long an address has to wait before it may try a token, or 0.
func (a *attempts) may(addr string, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.from) >= time.Minute {
		a.from, a.all = now, 0
		clear(a.by)
	}
	if a.all >= allAttempts || a.by[network(addr)] >= attemptsPerMinute {
		return a.from.Add(time.Minute).Sub(now)
	}
	return 0
}

// wrong counts a wrong token.
func (a *attempts) wrong(addr string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all++
	a.by[network(addr)]++
}

func network(addr string) netip.Prefix {
	host, err := netip.ParseAddrPort(addr)
	if err != nil {
		return netip.Prefix{}
	}
	ip := host.Addr().Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits)
	return p
}
