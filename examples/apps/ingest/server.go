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
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/errstatus"
)

// bodies is how many compressed bodies of the largest size may be in memory at once.
const bodies = 8

// memoryOf is how many bytes requests may take while they are read and decoded.
func memoryOf(l app.Bounds) int64 { return bodies * max(l.Body, 64<<10) }

// maxUseless bounds the blank lines, comments and refused lines of one request: they cost time, and no limit counts
// them.
const maxUseless = 10_000

// server implements the endpoints of InfluxDB 1 and 2 that agents use to write.
type server struct {
	in     *ingester
	auth   auth
	limits app.Bounds
	log    *slog.Logger
	memory *edge.Shares // bytes of the bodies that are being read
	slots  *edge.Shares // one for each request that may write at once
	ready  *edge.Ready

	mapping *mapping // of OTLP; nil if it is off

	mu      sync.Mutex
	lines   report // of all requests
	metrics report
}

func newServer(in *ingester, a auth, l app.Bounds, m *mapping, log *slog.Logger) *server {
	return &server{
		in: in, auth: a, limits: l, mapping: m, log: log,
		memory: edge.NewShares(memoryOf(l)), slots: edge.NewShares(int64(l.Requests)), ready: edge.NewReady(in.sink.Store.Ping),
	}
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /write", func(w http.ResponseWriter, r *http.Request) { s.write(w, r, version1{}) })
	mux.HandleFunc("POST /api/v2/write", func(w http.ResponseWriter, r *http.Request) { s.write(w, r, version2{}) })
	mux.HandleFunc("/query", s.query)
	if s.mapping != nil {
		mux.HandleFunc("POST /v1/metrics", s.exportHTTP)
	}
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /health", s.health)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Influxdb-Version", "tidemark-ingest")
		mux.ServeHTTP(w, r)
	})
}

// write stores the lines of a request, and responds once the outcome of each is known.
func (s *server) write(w http.ResponseWriter, r *http.Request, v version) {
	id, ok := s.auth.tenant(r)
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
		v.fail(w, http.StatusBadRequest, "precision must be ns, us, ms, s, m or h", 0)
		return
	}
	consistent, err := isConsistent(r)
	if err != nil {
		v.fail(w, http.StatusBadRequest, err.Error(), 0)
		return
	}
	packed, release, err := edge.ReadBody(http.MaxBytesReader(w, r.Body, s.limits.Body), id, s.memory)
	defer release()
	if errors.Is(err, edge.ErrNoRoom) {
		s.busy(w, v, err.Error())
		return
	}
	var body io.Reader
	if err == nil {
		body, err = unpacked(w, r, packed, s.limits.Body)
	}
	if err != nil {
		v.fail(w, statusOf(err), tooLarge(err, ""), 0)
		return
	}
	releaseSlot, fail := s.begin(id)
	if fail != nil {
		s.busy(w, v, fail.message)
		return
	}
	defer releaseSlot()
	ctx, cancel := context.WithTimeout(whose, s.limits.Timeout)
	defer cancel()
	rep, err := s.in.ingest(ctx, id, body, inbound.Clock{Unit: unit, Now: time.Now().Truncate(unit)}, maxUseless)
	s.count(&s.lines, rep)
	readable := true
	if consistent && err == nil && rep.journaled > 0 {
		readable = s.in.sink.Writer.Flush(ctx) == nil
	}
	s.answer(w, v, id, rep, err, readable)
}

// begin takes a slot for a request. Do this after its body was read, so that slow clients do not block others.
func (s *server) begin(id tenant.ID) (release func(), _ *failure) {
	if !s.slots.Take(id, 1) {
		return nil, busy("too many requests at once")
	}
	// In an outage requests would only wait. The writer notices its end as long as points are waiting.
	if st := s.in.sink.Writer.Stats(); !s.in.journaled && st.Down != nil && st.BufferedPoints > 0 {
		s.slots.Return(id, 1)
		return nil, busy("the store cannot be reached now")
	}
	return func() { s.slots.Return(id, 1) }, nil
}

// isConsistent reports whether a request asks for an answer only once its points can be read.
func isConsistent(r *http.Request) (bool, error) {
	text := r.URL.Query().Get("consistent")
	if text == "" {
		return false, nil
	}
	yes, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("consistent is %.20q; want 1 or 0", text)
	}
	return yes, nil
}

// answer responds with the outcome of the lines. Agents drop the lines after a status below 500, and send them again
// after any other. So a request whose lines may not all be stored gets 500 or more, even if it also has bad lines.
//
// readable says that the points can be read, or that the request did not ask to wait for that.
func (s *server) answer(w http.ResponseWriter, v version, id tenant.ID, rep report, err error, readable bool) {
	var bad string
	first := 0
	if rep.refused > 0 {
		bad = rep.why()
		first = rep.examples[0].number
	}
	over, isOver := errors.AsType[*limit.Error](err)
	switch {
	case isOver && outgrows(rep, over):
		v.fail(w, http.StatusRequestEntityTooLarge, burstText(over), 0)
	case isOver:
		r := errstatus.HTTP(over)
		edge.RetryAfter(w, r.RetryAfter)
		v.fail(w, r.Status, fmt.Sprintf("over the tenant's limit %s; send all lines again", over.ID), 0)
	case errors.Is(err, errUndelivered):
		s.log.Error("lines not stored", "tenant", id.String(), "lines", rep.lines, "stored", rep.stored, "error", err)
		s.busy(w, v, "not all points could be stored; send them again")
	case err != nil:
		s.log.Warn("request not read to its end", "tenant", id.String(), "lines", rep.lines, "stored", rep.stored, "error", err)
		v.fail(w, statusOf(err), fmt.Sprintf("partial write: %v; %d lines stored before", tooLarge(err, " once it is unpacked"), rep.stored), 0)
	case rep.refused > 0:
		s.log.Warn("lines refused", "tenant", id.String(), "lines", rep.lines, "stored", rep.stored, "refused", rep.refused, "why", bad)
		v.fail(w, http.StatusBadRequest, fmt.Sprintf("partial write: %s dropped=%d", bad, rep.refused), first)
	case !readable:
		writeJSON(w, http.StatusAccepted, map[string]string{
			"message": "all points are in the journal and will be delivered; within the time of the request not all could be read yet",
		})
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// outgrows reports whether a request has more points or bytes than the limit's burst. The same request would always be
// refused.
func outgrows(rep report, over *limit.Error) bool {
	switch over.ID {
	case limit.PointsPerSecond:
		return int64(rep.sent) > over.Burst
	case limit.BytesPerSecond:
		return rep.bytes > over.Burst
	}
	return false
}

func burstText(over *limit.Error) string {
	return fmt.Sprintf("the request is larger than the burst of %d that the tenant's %s allows; send smaller requests", over.Burst, over.ID)
}

// busy responds with 503 and Retry-After.
func (s *server) busy(w http.ResponseWriter, v version, why string) {
	w.Header().Set("Retry-After", "1")
	v.fail(w, http.StatusServiceUnavailable, why, 0)
}

// count adds the report of a request to the totals.
func (s *server) count(total *report, rep report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	total.add(rep)
}

// sum returns the totals of all requests, of lines and of data points.
func (s *server) sum() (lines, metrics report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines, s.metrics
}

// units are the precisions, by their names in either version.
var units = map[string]time.Duration{
	"": 1, "n": 1, "ns": 1, "u": time.Microsecond, "µ": time.Microsecond, "us": time.Microsecond,
	"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour,
}

var errEncoding = errors.New("the body's encoding is neither gzip nor none")

// errGzip is the error of a body that is not in gzip format, although its header says so.
var errGzip = errors.New("the body is not in gzip format")

// unpacked returns the decompressed body. Reading it fails with an *http.MaxBytesError if it has more than most bytes.
func unpacked(w http.ResponseWriter, r *http.Request, packed io.Reader, most int64) (io.Reader, error) {
	switch strings.ToLower(r.Header.Get("Content-Encoding")) {
	case "", "identity":
		return packed, nil
	case "gzip":
	default:
		return nil, errEncoding
	}
	z, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGzip, err)
	}
	return http.MaxBytesReader(w, z, most), nil
}

// tooLarge returns the text of an error. If a body is too large, it names the limit and when it was exceeded.
func tooLarge(err error, when string) string {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Sprintf("the body has more than %d bytes%s, which is the limit of -max-body", large.Limit, when)
	}
	return err.Error()
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

// query answers CREATE DATABASE, which agents of version 1 send first. It creates nothing: the token selects the
// tenant.
func (s *server) query(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if _, ok := s.auth.tenant(r); !ok {
		version1{}.fail(w, http.StatusUnauthorized, "the token is missing or not known", 0)
		return
	}
	if !createDatabase.MatchString(r.FormValue("q")) {
		version1{}.fail(w, http.StatusBadRequest, "only CREATE DATABASE is answered here", 0)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"results": []map[string]int{{"statement_id": 0}}})
}

// health reports whether the store can be read.
func (s *server) health(w http.ResponseWriter, _ *http.Request) {
	status, answer := http.StatusOK, map[string]string{"name": "tidemark-ingest", "status": "pass", "message": "ready for writes"}
	if err := s.ready.Err(); err != nil && !errors.Is(err, tsdb.ErrNoTable) {
		s.log.Error("the store cannot be read", "error", err)
		status, answer["status"], answer["message"] = http.StatusServiceUnavailable, "fail", "the store cannot be read"
	}
	writeJSON(w, status, answer)
}

// http returns the HTTP server.
func (s *server) http() *http.Server {
	return app.NewServer(s.handler(), s.limits.Timeout, s.limits.Timeout+10*time.Second, s.log)
}
