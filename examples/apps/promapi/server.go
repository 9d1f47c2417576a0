package main

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/httptenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// limits bound the resources of requests.
type limits struct {
	body      int64         // bytes of a body, compressed or not
	samples   int           // that a query reads or holds
	series    int           // that a request selects
	timeout   time.Duration // for a request
	lookback  time.Duration // how far back the newest sample of a series may be
	requests  int           // of all tenants in parallel
	perTenant int           // of one tenant in parallel
	slow      time.Duration // a query that takes longer is logged
}

// formBody is the largest form of a query.
const formBody = 1 << 20

// bodies is the number of bodies of the largest size that fit into memory at once.
const bodies = 8

// server answers requests. It is safe for concurrent use.
type server struct {
	store    *tsdb.Store
	writer   *tsdb.Writer
	prom     *promSource
	sources  []source
	engine   *promql.Engine
	parser   parser.Parser
	limits   limits
	log      *slog.Logger
	edge     func(http.Handler) http.Handler // lets only requests with a tenant through
	memory   *edge.Shares                    // bytes of the bodies that are being read
	gate     *gate
	metadata metadataCaches
	ready    *edge.Ready
	now      func() time.Time
}

func newServer(store *tsdb.Store, writer *tsdb.Writer, schema *tsdb.Schema[sample], who tenant.Resolver, l limits, log *slog.Logger, others ...source) (*server, error) {
	s := &server{
		store: store, writer: writer, prom: newPromSource(store, schema), limits: l, log: log, now: time.Now,
		parser: parser.NewParser(parserOptions), memory: edge.NewShares(bodies * l.body),
		gate: newGate(l.requests, l.perTenant), ready: edge.NewReady(store.Ping),
	}
	s.sources = append([]source{s.prom}, others...)
	s.engine = promql.NewEngine(promql.EngineOpts{
		Logger:                   promslog.NewNopLogger(),
		MaxSamples:               l.samples,
		Timeout:                  l.timeout,
		LookbackDelta:            l.lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		Parser:                   s.parser,
	})
	var err error
	s.edge, err = httptenant.New(who, httptenant.Options{
		Public:    httptenant.Paths("/-/healthy", "/-/ready"),
		Challenge: `Basic realm="tidemark", Bearer realm="tidemark"`,
	})
	return s, err
}

var parserOptions = parser.Options{}

// forget drops what is cached of a tenant.
func (s *server) forget(id tenant.ID) {
	for _, src := range s.sources {
		src.forget(id)
	}
	s.metadata.forget(id)
}

// request is a request of the query API after the checks that all share.
type request struct {
	*http.Request
	tenant tenant.ID
	params *params
	budget *budget
}

// answer is the data of a response, as JSON, and what there is to say about it.
type answer struct {
	data  []byte
	query string // that the notes are about
	notes annotations.Annotations
}

// handler answers a request, or returns an error.
type handler func(ctx context.Context, r request) (answer, error)

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	for path, h := range map[string]handler{
		"query":               s.query,
		"query_range":         s.queryRange,
		"query_exemplars":     s.exemplars,
		"series":              s.series,
		"labels":              s.labels,
		"format_query":        s.formatQuery,
		"label/{name}/values": s.labelValues,
		"metadata":            s.metadataOf,
		"status/buildinfo":    buildInfo,
		"rules":               noRules,
		"alerts":              noAlerts,
	} {
		mux.Handle("GET /api/v1/"+path, s.guarded(h))
		switch path {
		case "query", "query_range", "query_exemplars", "series", "labels", "format_query":
			mux.Handle("POST /api/v1/"+path, s.guarded(h))
		}
	}
	mux.HandleFunc("POST /api/v1/write", s.remoteWrite)
	mux.HandleFunc("POST /api/v1/read", s.remoteRead)
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("healthy\n")) })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if s.ready.Err() != nil {
			http.Error(w, "the store cannot be read", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	})
	inner := s.edge(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		inner.ServeHTTP(w, r)
	})
}

// guarded bounds the number, the time and the form of a request, and writes the answer.
func (s *server) guarded(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, _ := tenant.FromContext(r.Context())
		r.Body = http.MaxBytesReader(w, r.Body, formBody)
		if err := r.ParseForm(); err != nil {
			s.fail(w, r, badData(err))
			return
		}
		if !s.gate.enter(id) {
			s.fail(w, r, errBusy)
			return
		}
		defer s.gate.leave(id)
		if err := s.admit(r.Context(), id); err != nil {
			s.fail(w, r, err)
			return
		}
		p := newParams(r.Form, s.now())
		ctx, cancel := context.WithTimeout(r.Context(), min(s.limits.timeout, p.duration("timeout", s.limits.timeout)))
		defer cancel()
		a, err := h(ctx, request{r, id, p, newBudget(int64(s.limits.series), int64(s.limits.samples))})
		if p.err != nil {
			err = badData(p.err)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		writeAnswer(w, a)
	})
}

// admit refuses a tenant that is erased, whose series may still be in a cache. It knows the store's marks, and sends no
// request.
func (s *server) admit(ctx context.Context, id tenant.ID) error {
	_, err := s.prom.schema.For(s.store, id).LatestN(ctx, seriesEntity(samplesKind, labels.FromStrings(model.MetricNameLabel, "up")), 0)
	return stored(err)
}

// queryable returns the series of the request's tenant.
func (s *server) queryable(r request) *queryable {
	return &queryable{r.tenant, s.sources, r.budget, r.params.duration("lookback_delta", s.limits.lookback)}
}

// writeAnswer writes {"status":"success","data":…}.
func writeAnswer(w http.ResponseWriter, a answer) {
	body := append([]byte(`{"status":"success","data":`), a.data...)
	warnings, infos := a.notes.AsStrings(a.query, 10, 10)
	if len(warnings) > 0 {
		body = appendStrings(append(body, `,"warnings":`...), warnings)
	}
	if len(infos) > 0 {
		body = appendStrings(append(body, `,"infos":`...), infos)
	}
	body = append(body, "}\n"...)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client may have gone
}

// http returns the HTTP server.
func (s *server) http() *http.Server {
	return app.NewServer(s.handler(), time.Minute, s.limits.timeout+time.Minute, s.log)
}
