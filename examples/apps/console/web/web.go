// Package web is the console as an HTTP handler: pages that show the data of a tenant, and the JSON that they read. It
// only reads the store. Another program serves it next to its own handlers, as examples/fleet does.
//
//	console, err := web.New(web.Config{Store: store, Tenant: tokens.Tenant})
//	if err != nil {
//		return err
//	}
//	defer console.Close()
//	http.Handle("/", console)
//
// In this folder login.go and sessions.go turn a token into a session, api.go is what all answers share, and each of
// fleet.go, lines.go, states.go, points.go, csv.go and live.go answers what a page asks for. The pages are in assets.
package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/httptenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

// Config is what the console shows and to whom. Zero fields that are not required have their defaults.
type Config struct {
	// Store is what is read. It is required. The console does not close it.
	Store *tsdb.Store
	// Tenant returns the tenant of a bearer token. It is required, and called by many goroutines at once.
	Tenant func(token string) (tenant.ID, bool)
	// Operator reports whether a bearer token is the operator's, who sees all tenants, the figures of the process and
	// those of the whole table. Nil means that no token is. It is called by many goroutines at once.
	Operator func(token string) bool
	// Metrics, Keys and Limits are those of the program's own stores, for the pages health and keys, which say so where
	// they are nil.
	Metrics Metrics
	Keys    *heatmap.Recorder
	Limits  *limit.Limiter
	// Known are the datasets whose schemas the program has: their charts use rollups. All others are read by the
	// catalogue.
	Known []Known
	// Secure says that browsers reach the console by HTTPS although it gets plain HTTP: behind a proxy. Cookies are
	// then only sent by HTTPS, as they are for requests by TLS.
	Secure bool
	// Sessions keeps sessions over a restart of the program.
	Sessions SessionFile
	// Links lets the address /login#token=TOKEN log in without a click. Set it only if no user of the console can give
	// others a token that is valid, as in a program that makes its tokens at its start and prints them to its only
	// user. Otherwise anybody who has a token can put such a link on another site, and it would add a tenant to the
	// sessions of those who follow it.
	Links bool
	// Log gets what fails in the server. Nil is none.
	Log *slog.Logger
	// Requests is how many requests may read at once. Zero is 64.
	Requests int
	// Streams is how many live streams may be open at once. Zero is 256.
	Streams int
	// Timeout is how long a request may read. Zero is 10 seconds. A download may take ten times as long.
	Timeout time.Duration
}

// Console serves the pages. It is safe for concurrent use. Close ends its streams.
type Console struct {
	Config
	handler  http.Handler
	sessions *sessions
	attempts *attempts
	catalog  *catalog
	meter    *meter
	table    *shared[tableState]
	everyone *shared[everyone]
	recorded *shared[seen]
	advices  sharedBy[tenantDataset, advice]
	counts   sharedBy[tenant.ID, tenants.UsageReport]
	slots    *edge.Shares // one for each request that reads
	exports  *edge.Shares // one for each download
	streams  *edge.Shares // one for each live stream
	ctx      context.Context
	stop     context.CancelCauseFunc
}

// errStopping ends the streams of a console that is closed.
var errStopping = errors.New("the console stops")

// New returns a console. The error names a required field that is missing.
func New(c Config) (*Console, error) {
	switch {
	case c.Store == nil:
		return nil, errors.New("web: Config.Store is nil; want the store to read")
	case c.Tenant == nil:
		return nil, errors.New("web: Config.Tenant is nil; want a function that knows tokens")
	case c.Requests < 0 || c.Streams < 0 || c.Timeout < 0:
		return nil, errors.New("web: Config.Requests, Streams or Timeout is negative; want 0 for the default, or more")
	}
	if c.Requests == 0 {
		c.Requests = 64
	}
	if c.Streams == 0 {
		c.Streams = 256
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Console{
		Config: c, attempts: newAttempts(), catalog: newCatalog(c.Store, c.Known),
		slots: edge.NewShares(int64(c.Requests)), exports: edge.NewShares(int64(max(1, c.Requests/8))), streams: edge.NewShares(int64(c.Streams)),
	}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	var err error
	if s.sessions, err = newSessions(s.ctx, c.Sessions, time.Now()); err != nil {
		c.Log.Warn("sessions of the last start are over", "error", err) // users log in again
	}
	s.meter = &meter{source: c.Metrics}
	s.table = newShared((*tableState).keep, s.readTable)
	s.everyone = newShared((*everyone).keep, s.readEveryone)
	s.recorded = newShared(keepFor[seen](keysFor-time.Second), s.readKeys)
	guard, err := httptenant.New(ownTenant{}, httptenant.Options{Answer: s.fail})
	if err != nil {
		return nil, err
	}
	s.handler = s.routes(guard)
	return s, nil
}

// Close ends all streams and sessions. It always returns nil.
func (s *Console) Close() error {
	s.stop(errStopping)
	return nil
}

// policy lets the pages load only what this server has, and no script or style inside of HTML.
const policy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

// ServeHTTP implements http.Handler.
func (s *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if len(r.URL.RawQuery) > maxQuery {
		s.fail(w, r, refused("the query", "too long", "at most 16,384 bytes"))
		return
	}
	if r.Body == nil || r.Body == http.NoBody { // the server's ReadTimeout would cancel a request whose answer takes longer
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // some writers of tests have none
	}
	s.handler.ServeHTTP(w, r)
}

// maxQuery is the largest number of bytes of a query.
const maxQuery = 16 << 10

// pages are the addresses of the pages. All have the same HTML, and its script shows the page.
var pages = []string{"/fleet", "/entity", "/compare", "/keys", "/health"}

func (s *Console) routes(guard func(http.Handler) http.Handler) http.Handler {
	mux := http.NewServeMux()
	read := func(path string, h handler) {
		mux.Handle("GET /api/{tenant}"+path, s.ofTenant(guard(s.reading(h))))
	}
	read("/datasets", withoutParams(s.datasets))
	read("/{dataset}/fields", s.fields)
	read("/{dataset}/latest", s.latest)
	read("/{dataset}/silent", s.silent)
	read("/{dataset}/entities", s.entities)
	read("/{dataset}/sparks", s.sparks)
	read("/{dataset}/lines", s.lines)
	read("/{dataset}/states", s.states)
	read("/{dataset}/points", s.points)
	read("/{dataset}/asof", s.asof)
	mux.Handle("GET /api/{tenant}/{dataset}/csv", s.ofTenant(guard(s.exporting(s.csv))))
	mux.Handle("GET /api/{tenant}/{dataset}/live", s.ofTenant(guard(s.streaming(s.live))))
	read("/health", withoutParams(s.health))
	read("/storage", withoutParams(s.storage))
	read("/keys", withoutParams(s.keys))
	read("/{dataset}/advice", withoutParams(s.advice))
	table := func(path string, h http.Handler) { mux.Handle("GET /api/table"+path, s.ofOperator(h)) }
	table("/health", s.reading(withoutParams(s.tableHealth)))
	table("/storage", s.reading(withoutParams(s.tableStorage)))
	table("/keys", s.reading(withoutParams(s.tableKeys)))
	table("/heatmap", s.reading(withoutParams(s.tableHeatmap)))
	mux.HandleFunc("GET /api/session", s.session)
	mux.HandleFunc("GET /login", s.loginPage)
	mux.HandleFunc("POST /login", s.login)
	mux.HandleFunc("POST /logout", s.logout)
	for _, page := range pages {
		mux.HandleFunc("GET "+page, s.page)
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/fleet", http.StatusFound) })
	mux.HandleFunc("GET /assets/", s.asset)
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) { s.sendFile(w, r, files["icon.svg"]) })
	mux.HandleFunc("/", s.nothing)
	return http.NewCrossOriginProtection().Handler(mux)
}
