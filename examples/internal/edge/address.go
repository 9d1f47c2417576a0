package edge

import (
	"net"
	"net/http"
	"net/netip"
)

// Loopback reports whether only this machine reaches a host's address. An empty host is every address.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// LocalHost lets only requests through whose Host header names this machine. A server on a loopback address uses it so
// that a web page cannot read it through a DNS name that resolves to 127.0.0.1. Other requests get 403.
func LocalHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		} else if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' { // IPv6 without a port
			host = host[1 : len(host)-1]
		}
		if !Loopback(host) {
			http.Error(w, "the Host header does not name this machine", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
