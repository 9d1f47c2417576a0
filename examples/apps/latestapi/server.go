package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/httptenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// bodies is the number of bodies of the largest size that fit into memory at once.
const bodies = 32

// server answers requests. It is safe for concurrent use.
type server struct {
	store    *tsdb.Store
	datasets map[string]dataset
	edge     func(http.Handler) http.Handler // lets only requests with a tenant through
	limits   app.Bounds
	log      *slog.Logger
	memory   *edge.Shares // bytes of the bodies that are being read
	slots    *edge.Shares // one for each request that may read at once
	ready    *edge.Ready
	stopping atomic.Bool // readyz then fails, so that load balancers send no more requests
	streams  context.Context
	stop     context.CancelCauseFunc // ends all streams
}

func newServer(store *tsdb.Store, ts *bearer, l app.Bounds, log *slog.Logger) (s *server, err error) {
	s = &server{
		store: store, datasets: datasetsOf(store), limits: l, log: log,
		memory: edge.NewShares(bodies * max(l.Body, 64<<10)), slots: edge.NewShares(int64(l.Requests)), ready: edge.NewReady(store.Ping),
	}
	s.streams, s.stop = context.WithCancelCause(context.Background())
	s.edge, err = httptenant.New(ts, httptenant.Options{Answer: s.turnAway})
	return s, err
}

// request is a request after the checks that all queries share.
type request struct {
	*http.Request
	tenant  tenant.ID
	dataset dataset
	params  *params
}

// handler answers a request, or returns an error. It may return an error only before it has written anything.
type handler func(w http.ResponseWriter, r request) error

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	allowed := map[string][]string{}
	for _, q := range s.queries() {
		if q.Path == livePath {
			mux.Handle(q.Method+" "+q.Path, s.streamed(q.answer))
		} else {
			mux.Handle(q.Method+" "+q.Path, s.guarded(q.answer))
		}
		if allowed[q.Path] = append(allowed[q.Path], q.Method); q.Method == http.MethodGet { // GET includes HEAD
			allowed[q.Path] = append(allowed[q.Path], http.MethodHead)
		}
	}
	for path, methods := range allowed {
		mux.Handle(path, s.otherMethod(append(methods, http.MethodOptions)))
	}
	mux.HandleFunc("GET /{$}", s.root)
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("/healthz", s.otherMethod([]string{http.MethodGet, http.MethodHead, http.MethodOptions}))
	mux.Handle("/readyz", s.otherMethod([]string{http.MethodGet, http.MethodHead, http.MethodOptions}))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, noResource.problem()) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store") // the latest point soon changes
		mux.ServeHTTP(w, r)
	})
}

// known passes only requests of a known tenant for a known dataset on.
func (s *server) known(next func(http.ResponseWriter, request)) http.Handler {
	return s.edge(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, _ := tenant.FromContext(r.Context())
		ds, ok := s.datasets[r.PathValue("dataset")]
		if !ok && r.URL.Path != indexPath {
			s.fail(w, r, noDataset.problem())
			return
		}
		next(w, request{r, id, ds, paramsOf(r)})
	}))
}

// guarded passes only requests of a known tenant for a known dataset to a handler, and bounds their number and time.
func (s *server) guarded(h handler) http.Handler {
	return s.known(func(w http.ResponseWriter, r request) {
		whole, id := r.Request, r.tenant
		if r.Method == http.MethodPost { // before the slot is taken, so that slow clients do not block others
			body, release, err := edge.ReadBody(http.MaxBytesReader(w, r.Body, s.limits.Body), id, s.memory)
			defer release()
			if err != nil {
				s.fail(w, whole, err)
				return
			}
			r.Body = io.NopCloser(body)
		}
		if !s.slots.Take(id, 1) {
			s.fail(w, whole, busy.problem())
			return
		}
		defer s.slots.Return(id, 1)
		ctx, cancel := context.WithTimeout(r.Context(), r.params.timeout(s.limits.Timeout))
		defer cancel()
		r.Request = whole.WithContext(ctx)
		if err := h(w, r); err != nil {
			s.fail(w, whole, err)
		}
	})
}

// otherMethod answers methods that an address does not support.
func (s *server) otherMethod(allowed []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		s.fail(w, r, methodNotAllowed.problem())
	})
}

const (
	asJSON  = "application/json"
	asLines = "application/x-ndjson"
	asCSV   = "text/csv"
)

// accepted returns the offered media type that the client prefers, or a problem.
func accepted(r *http.Request, offers ...string) (string, error) {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return offers[0], nil
	}
	best, found := 0.0, ""
	for _, offer := range offers {
		if q := quality(header, offer); q > best {
			best, found = q, offer
		}
	}
	if found == "" {
		return "", notAcceptable.problem().with("there is " + strings.Join(offers, ", "))
	}
	return found, nil
}

// quality returns the quality value of a media type in an Accept header, from the most specific range that matches.
func quality(header, offer string) float64 {
	major, _, _ := strings.Cut(offer, "/")
	specific, q := 0, 0.0
	for part := range strings.SplitSeq(header, ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		level := map[string]int{"*/*": 1, major + "/*": 2, offer: 3}[kind]
		if level <= specific {
			continue
		}
		specific, q = level, 1
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				q = 0
			}
		}
	}
	return q
}

// write answers with JSON. If the value cannot be encoded, nothing has been sent yet, and write returns an error.
func write(w http.ResponseWriter, answer any) error {
	var body bytes.Buffer
	out := json.NewEncoder(&body)
	out.SetEscapeHTML(false) // no \u0026 in addresses; it is never shown as HTML
	if err := out.Encode(answer); err != nil {
		return internal.problem().with("the answer cannot be written as JSON")
	}
	w.Header().Set("Content-Type", asJSON)
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	_, _ = w.Write(body.Bytes()) // the client may have gone
	return nil
}

// http returns the HTTP server.
func (s *server) http() *http.Server {
	return app.NewServer(s.handler(), 30*time.Second, s.limits.Timeout+30*time.Second, s.log)
}
