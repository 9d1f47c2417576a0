package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// limits bound what requests can ask of this program.
type limits struct {
	body     int64         // bytes of a body, packed and unpacked
	requests int           // at once
	timeout  time.Duration // of a request
}

// server answers as InfluxDB does, in versions 1 and 2, what an agent that writes asks of it.
type server struct {
	in     *ingester
	tokens tokens
	limits limits
	log    *slog.Logger
	slots  chan struct{} // one for each request that may write at once

	mu    sync.Mutex
	total report
}

func newServer(in *ingester, ts tokens, l limits, log *slog.Logger) *server {
	return &server{in: in, tokens: ts, limits: l, log: log, slots: make(chan struct{}, l.requests)}
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /write", func(w http.ResponseWriter, r *http.Request) { s.write(w, r, version1{}) })
	mux.HandleFunc("POST /api/v2/write", func(w http.ResponseWriter, r *http.Request) { s.write(w, r, version2{}) })
	mux.HandleFunc("/query", s.query)
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /health", s.health)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Influxdb-Version", "tidemark-ingest")
		mux.ServeHTTP(w, r)
	})
}

// write stores the lines of a request, and answers when what became of them is known.
func (s *server) write(w http.ResponseWriter, r *http.Request, v version) {
	id, ok := s.tokens.authenticate(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", `Basic realm="tidemark"`)
		v.fail(w, http.StatusUnauthorized, "the token is missing or not known", 0)
		return
	}
	whose, err := tenant.Bind(r.Context(), id)
	if err != nil {
		v.fail(w, http.StatusForbidden, "the request is another tenant's already", 0)
		return
	}
	unit, ok := units[r.URL.Query().Get("precision")]
	if !ok {
		v.fail(w, http.StatusBadRequest, "precision has to be ns, us, ms, s, m or h", 0)
		return
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		s.busy(w, v, "too many requests at once")
		return
	}
	// In an outage requests would only wait. While points are waiting the writer finds out by itself when it is over.
	if st := s.in.writer.Stats(); !s.in.journaled && st.Down != nil && st.BufferedPoints > 0 {
		s.busy(w, v, "the store cannot be reached now")
		return
	}
	body, err := s.body(w, r)
	if err != nil {
		v.fail(w, statusOf(err), err.Error(), 0)
		return
	}
	ctx, cancel := context.WithTimeout(whose, s.limits.timeout)
	defer cancel()
	rep, err := s.in.ingest(ctx, id, body, clock{unit: unit, now: time.Now().Truncate(unit)})
	s.count(rep)
	s.answer(w, v, id, rep, err)
}

// answer says what became of the lines. Agents drop what was answered with a status below 500, and send again what was
// answered with another: so a request of which anything may be missing gets the latter, even if it has bad lines too.
func (s *server) answer(w http.ResponseWriter, v version, id tenant.ID, rep report, err error) {
	var bad string
	first := 0
	if rep.refused > 0 {
		bad = rep.why()
		first = rep.examples[0].first
	}
	switch {
	case errors.Is(err, errUndelivered):
		s.log.Error("lines not stored", "tenant", id.String(), "lines", rep.lines, "stored", rep.stored, "error", err)
		s.busy(w, v, "not all points could be stored; send them again")
	case err != nil:
		s.log.Warn("request not read to its end", "tenant", id.String(), "lines", rep.lines, "stored", rep.stored, "error", err)
		v.fail(w, statusOf(err), fmt.Sprintf("partial write: %v; %d lines stored before", err, rep.stored), 0)
	case rep.refused > 0:
		s.log.Warn("lines refused", "tenant", id.String(), "lines", rep.lines, "stored", rep.stored, "refused", rep.refused, "why", bad)
		v.fail(w, http.StatusBadRequest, fmt.Sprintf("partial write: %s dropped=%d", bad, rep.refused), first)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// busy asks the agent to come again.
func (s *server) busy(w http.ResponseWriter, v version, why string) {
	w.Header().Set("Retry-After", "1")
	v.fail(w, http.StatusServiceUnavailable, why, 0)
}

func (s *server) count(rep report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.add(rep)
}

// sum returns what became of the lines of all requests.
func (s *server) sum() report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// units are the precisions, by their names in either version.
var units = map[string]time.Duration{
	"": 1, "n": 1, "ns": 1, "u": time.Microsecond, "µ": time.Microsecond, "us": time.Microsecond,
	"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour,
}

var errEncoding = errors.New("the body's encoding has to be gzip or none")

// errGzip says that a body is not what its encoding says.
var errGzip = errors.New("the body is not in gzip format")

// body returns the body as it is unpacked. Reading fails with an *http.MaxBytesError where it is too large, packed or not.
func (s *server) body(w http.ResponseWriter, r *http.Request) (io.Reader, error) {
	body := http.MaxBytesReader(w, r.Body, s.limits.body)
	switch strings.ToLower(r.Header.Get("Content-Encoding")) {
	case "", "identity":
		return body, nil
	case "gzip":
	default:
		return nil, errEncoding
	}
	z, err := gzip.NewReader(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGzip, err)
	}
	return http.MaxBytesReader(w, z, s.limits.body), nil
}

func statusOf(err error) int {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge
	}
	if errors.Is(err, errEncoding) {
		return http.StatusUnsupportedMediaType
	}
	return http.StatusBadRequest
}

var createDatabase = regexp.MustCompile(`(?i)^\s*create\s+database\s`)

// query answers the one query that agents of version 1 begin with. There are no databases here: the token says whose the
// points are.
func (s *server) query(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if _, ok := s.tokens.authenticate(r); !ok {
		version1{}.fail(w, http.StatusUnauthorized, "the token is missing or not known", 0)
		return
	}
	if !createDatabase.MatchString(r.FormValue("q")) {
		version1{}.fail(w, http.StatusBadRequest, "only CREATE DATABASE is answered here", 0)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"results": []map[string]int{{"statement_id": 0}}})
}

// health says whether the store can be read.
func (s *server) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	status, answer := http.StatusOK, map[string]string{"name": "tidemark-ingest", "status": "pass", "message": "ready for writes"}
	if err := s.in.store.Ping(ctx); err != nil && !errors.Is(err, tsdb.ErrNoTable) {
		s.log.Error("the store cannot be read", "error", err)
		status, answer["status"], answer["message"] = http.StatusServiceUnavailable, "fail", "the store cannot be read"
	}
	writeJSON(w, status, answer)
}

// http returns the HTTP server, with a bound on everything that a client can take its time over.
func (s *server) http() *http.Server {
	return &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       s.limits.timeout,
		WriteTimeout:      s.limits.timeout + 10*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
}
