package main

import (
	"io"
	"net/http"
)

// healthz says that the process answers. It asks nothing of the store: starting the process anew would not help that.
func (s *server) healthz(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") }

// readyz says whether requests should be sent here: the table can be read, and the process is not about to end. Anybody may
// ask, so the table is read once a second at most.
func (s *server) readyz(w http.ResponseWriter, _ *http.Request) {
	if s.stopping.Load() {
		plain(w, http.StatusServiceUnavailable, "stopping\n")
		return
	}
	if err := s.ready.Err(); err != nil {
		s.log.Warn("not ready", "error", err)
		plain(w, http.StatusServiceUnavailable, "the store cannot be read\n")
		return
	}
	plain(w, http.StatusOK, "ready\n")
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}
