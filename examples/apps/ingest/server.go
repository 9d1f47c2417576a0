package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
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

// server implements the endpoints of InfluxDB 1, 2 and 3 that agents use to write, and those of OTLP and JSON.
type server struct {
	in     *ingester
	auth   auth
	limits app.Bounds
	log    *slog.Logger
	memory *edge.Shares // bytes of the bodies that are being read
	slots  *edge.Shares // one for each request that may write at once
	ready  *edge.Ready

	mapping *inbound.Mapping // of OTLP
	routes  routes           // of JSON
	// signatures stand for the tokens of JSON.
	signatures signatures

	mu       sync.Mutex
	lines    report // of all requests
	metrics  report
	messages report
}

func newServer(in *ingester, o options, log *slog.Logger) *server {
	l := o.Bounds
	return &server{
		in: in, auth: auth{&o.Tokens, o.inQuery}, limits: l, mapping: o.mapping, routes: o.routes, signatures: o.signatures, log: log,
		memory: edge.NewShares(memoryOf(l)), slots: edge.NewShares(int64(l.Requests)), ready: edge.NewReady(in.sink.Store.Ping),
	}
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /write", func(w http.ResponseWriter, r *http.Request) { s.write(w, r, version1{}, clock) })
	mux.HandleFunc("POST /api/v2/write", func(w http.ResponseWriter, r *http.Request) { s.write(w, r, version2{}, clock) })
	mux.HandleFunc("POST /api/v3/write_lp", func(w http.ResponseWriter, r *http.Request) { s.write(w, r, version3{}, clock3) })
	mux.HandleFunc("/query", s.query)
	mux.HandleFunc("POST /v1/metrics", s.exportHTTP)
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /health", s.health)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Influxdb-Version", "tidemark-ingest")
		if strings.HasPrefix(r.URL.EscapedPath(), jsonPath) { // the mux would clean the path, and redirect
			s.postJSON(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// write stores the lines of a request, and responds once the outcome of each is known.
func (s *server) write(w http.ResponseWriter, r *http.Request, v version, clockOf func(url.Values) (inbound.Clock, error)) {
	id, ok := s.auth.tenant(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", `Basic realm="tidemark"`)
		v.fail(w, http.StatusUnauthorized, "the token is missing or not known", report{})
		return
	}
	whose, err := tenant.Bind(r.Context(), id)
	if err != nil {
		v.fail(w, http.StatusForbidden, "the request is another tenant's already", report{})
		return
	}
	query := r.URL.Query()
	clock, err := clockOf(query)
	consistent := false
	if err == nil {
		consistent, err = boolean(query, "consistent", false)
	}
	if err != nil {
		v.fail(w, http.StatusBadRequest, err.Error(), report{})
		return
	}
	body, release, err := s.body(w, r, id)
	defer release()
	if errors.Is(err, edge.ErrNoRoom) {
		s.busy(w, v, err.Error())
		return
	}
	if err != nil {
		v.fail(w, statusOf(err), tooLarge(err, ""), report{})
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
	rep, err := s.in.ingest(ctx, id, body, clock, maxUseless)
	s.count(&s.lines, rep)
	s.answer(w, v, id, rep, err, !consistent || s.readable(ctx, rep, err))
}

// body reads the body of a request, and returns it decompressed. Always call release, once it is read. The error is
// edge.ErrNoRoom if there is no memory for it now.
func (s *server) body(w http.ResponseWriter, r *http.Request, id tenant.ID) (_ io.Reader, release func(), _ error) {
	packed, releasePacked, err := edge.ReadBody(http.MaxBytesReader(w, r.Body, s.limits.Body), id, s.memory)
	if err != nil {
		return nil, releasePacked, err
	}
	body, releaseUnpacked, err := s.unpacked(w, r, id, packed)
	return body, func() { releaseUnpacked(); releasePacked() }, err
}

// readable waits until the points in the journal can be read, and reports whether they can.
func (s *server) readable(ctx context.Context, rep report, err error) bool {
	return err != nil || rep.journaled == 0 || s.in.sink.Writer.Flush(ctx) == nil
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

// answer responds with the outcome of the lines. Agents drop the lines after a status below 500, and send them again
// after any other. So a request whose lines may not all be stored gets 500 or more, even if it also has bad lines.
//
// readable says that the points can be read, or that the request did not ask to wait for that.
func (s *server) answer(w http.ResponseWriter, v version, id tenant.ID, rep report, err error, readable bool) {
	over, isOver := errors.AsType[*limit.Error](err)
	switch {
	case isOver && outgrows(rep, over):
		v.fail(w, http.StatusRequestEntityTooLarge, burstText(over), report{})
	case isOver:
		r := errstatus.HTTP(over)
		edge.RetryAfter(w, r.RetryAfter)
		v.fail(w, r.Status, fmt.Sprintf("over the tenant's limit %s; send all of it again", over.ID), report{})
	case errors.Is(err, errUndelivered):
		s.log.Error("not all is stored", "tenant", id.String(), "read", rep.lines, "stored", rep.stored, "error", err)
		s.busy(w, v, "not all points could be stored; send them again")
	case err != nil:
		s.log.Warn("request not read to its end", "tenant", id.String(), "lines", rep.lines, "stored", rep.stored, "error", err)
		v.fail(w, statusOf(err), fmt.Sprintf("partial write: %v; %d lines stored before", tooLarge(err, " once it is unpacked"), rep.stored), report{})
	case rep.refused > 0:
		bad := rep.why()
		s.log.Warn("some is refused", "tenant", id.String(), "read", rep.lines, "stored", rep.stored, "refused", rep.refused, "why", bad)
		v.fail(w, http.StatusBadRequest, fmt.Sprintf("partial write: %s dropped=%d", bad, rep.refused), rep)
	case !readable:
		writeJSON(w, http.StatusAccepted, map[string]string{
			"message": "all points are in the journal and will be delivered; within the time of the request not all could be read yet",
		})
	default:
		v.done(w, rep)
	}
}

// outgrows reports whether a request has more points or bytes than the limit's burst. The same request would always be
// refused.
func outgrows(rep report, over *limit.Error) bool {
	switch over.ID {
	case limit.PointsPerSecond:
		return int64(rep.sent) > over.Burst
	case limit.BytesPerSecond:
		return rep.sent > 1 && rep.bytes > over.Burst // a single point may have more, after a pause
	}
	return false
}

func burstText(over *limit.Error) string {
	return fmt.Sprintf("the request is larger than the burst of %d that the tenant's %s allows; send smaller requests", over.Burst, over.ID)
}

// busy responds with 503 and Retry-After.
func (s *server) busy(w http.ResponseWriter, v version, why string) {
	w.Header().Set("Retry-After", "1")
	v.fail(w, http.StatusServiceUnavailable, why, report{})
}

// count adds the report of a request to the totals.
func (s *server) count(total *report, rep report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	total.add(rep)
}

// sum returns the totals of all requests, of lines, of data points and of messages.
func (s *server) sum() (lines, metrics, messages report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines, s.metrics, s.messages
}

var createDatabase = regexp.MustCompile(`(?i)^\s*create\s+database\s`)

// query answers CREATE DATABASE, which agents of version 1 send first. It creates nothing: the token selects the
// tenant.
func (s *server) query(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if _, ok := s.auth.tenant(r); !ok {
		version1{}.fail(w, http.StatusUnauthorized, "the token is missing or not known", report{})
		return
	}
	if !createDatabase.MatchString(r.FormValue("q")) {
		version1{}.fail(w, http.StatusBadRequest, "only CREATE DATABASE is answered here", report{})
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
