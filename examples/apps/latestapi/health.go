package main

import (
	"io"
	"net/http"
)

// healthz reports that the process responds. It does not read the store: restarting the process would not repair that.
func (s *server) healthz(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") }

// readyz reports whether to send requests here: the table can be read, and the process is not stopping. It needs no
// token, so it reads the table at most once a second.
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
