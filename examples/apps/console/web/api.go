package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// request is a request of a known tenant.
type request struct {
	*http.Request
	tenant tenant.ID
	params *params
}

// handler answers a request, or returns an error. It may return an error only before it has written anything.
type handler func(w http.ResponseWriter, r request) error

// withoutParams is h for an address that takes no parameters.
func withoutParams(h handler) handler {
	return func(w http.ResponseWriter, r request) error {
		if err := r.params.check(); err != nil {
			return err
		}
		return h(w, r)
	}
}

// sendTime is how long a client may take for a part of a response before it is disconnected.
const sendTime = 30 * time.Second

func requestOf(r *http.Request) request {
	id, _ := tenant.FromContext(r.Context()) // httptenant has put it there
	return request{r, id, paramsOf(r)}
}

// reading bounds how many requests of a tenant read at once, and for how long. A response is made in memory first, so
// that a slow client holds nothing but its bytes.
func (s *Console) reading(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := requestOf(r)
		var out answer
		err := func() error {
			if !s.slots.Take(one.tenant, 1) {
				return errBusy
			}
			defer s.slots.Return(one.tenant, 1)
			ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
			defer cancel()
			one.Request = r.WithContext(ctx)
			return h(&out, one)
		}()
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		s.write(w, r, out.body.Bytes())
	})
}

// exporting bounds downloads, which are sent while they are read.
func (s *Console) exporting(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := requestOf(r)
		if !s.exports.Take(one.tenant, 1) {
			s.fail(w, r, errBusy)
			return
		}
		defer s.exports.Return(one.tenant, 1)
		ctx, cancel := context.WithTimeout(r.Context(), 10*s.Timeout)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		one.Request = r.WithContext(ctx)
		if err := h(w, one); err != nil {
			s.fail(w, r, err)
		}
	})
}

// streaming bounds live streams. They end with the session and with the console.
func (s *Console) streaming(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := requestOf(r)
		if !s.streams.Take(one.tenant, 1) {
			s.fail(w, r, errBusy)
			return
		}
		defer s.streams.Return(one.tenant, 1)
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		if a, ok := r.Context().Value(contextKey{}).(asked); ok {
			defer context.AfterFunc(a.session.ctx, func() { cancel(context.Cause(a.session.ctx)) })()
		}
		one.Request = r.WithContext(ctx)
		if err := h(w, one); err != nil {
			s.fail(w, r, err)
		}
	})
}

// answer is a response in memory.
type answer struct {
	header http.Header
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(int) {}

// encode writes a value as JSON. Browsers show it only as text.
func encode(w http.ResponseWriter, value any) error {
	if err := json.NewEncoder(w).Encode(value); err != nil {
		return problem{Status: http.StatusInternalServerError, Detail: "The answer cannot be written as JSON."}
	}
	return nil
}

// send answers with a small value as JSON.
func (s *Console) send(w http.ResponseWriter, r *http.Request, value any) {
	var out answer
	if err := encode(&out, value); err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	s.write(w, r, out.body.Bytes())
}

// leastZipped is the smallest body that is compressed.
const leastZipped = 2 << 10

// write sends a body, compressed if the client takes that and if it is worth it.
func (s *Console) write(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Add("Vary", "Accept-Encoding")
	if len(body) >= leastZipped && acceptsGzip(r) {
		var zipped bytes.Buffer
		out, _ := gzip.NewWriterLevel(&zipped, gzip.BestSpeed) // a level that exists
		_, _ = out.Write(body)                                 // into memory
		_ = out.Close()
		body = zipped.Bytes()
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTime)) // some writers of tests have none
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may have gone
	}
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(name) == "gzip" {
			q, given := strings.CutPrefix(strings.ReplaceAll(quality, " ", ""), "q=")
			x, err := strconv.ParseFloat(q, 64)
			return !given || err == nil && x > 0
		}
	}
	return false
}

// bad reports whether an error is about single points that do not decode. They are shown as such.
func bad(err error) bool {
	if _, ok := errors.AsType[tsdb.PointErrors](err); ok {
		return true
	}
	_, ok := errors.AsType[*tsdb.PointError](err)
	return ok
}
