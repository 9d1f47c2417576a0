package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/errstatus"
)

// The messages of remote write, as the parameter proto of a Content-Type names them.
const (
	protobufType = "application/x-protobuf"
	writeV1      = "prometheus.WriteRequest"
	writeV2      = "io.prometheus.write.v2.Request"
)

// writeError is the response to a remote write or remote read request: text, because that is what senders log.
type writeError struct {
	status int
	text   string
	wait   time.Duration
}

func (e *writeError) Error() string { return e.text }

// remoteWrite answers POST of remote write, version 1 and 2. The status tells the sender what to do: after 5xx and 429
// it sends the request again, and after another 4xx it drops it. Sending again is safe, because a point that is stored
// twice is the same point.
func (s *server) remoteWrite(w http.ResponseWriter, r *http.Request) {
	id, _ := tenant.FromContext(r.Context())
	version, err := messageOf(r.Header)
	if err != nil {
		s.failWrite(w, r, err)
		return
	}
	message, release, err := s.readSnappy(w, r, id)
	defer release()
	if err != nil {
		s.failWrite(w, r, err)
		return
	}
	if !s.gate.enter(id) { // after the body is read, so that slow clients do not hold a place
		s.failWrite(w, r, errBusyWrite)
		return
	}
	defer s.gate.leave(id)
	batch, err := s.parseWrite(version, message, id)
	if err != nil {
		s.failWrite(w, r, &writeError{status: http.StatusBadRequest, text: err.Error()})
		return
	}
	written, err := s.storeBatch(r.Context(), id, batch)
	if version == writeV2 { // also with an error, so that the sender knows which part was stored
		for kind, n := range map[string]int{"Samples": written.samples, "Histograms": written.histograms, "Exemplars": written.exemplars} {
			w.Header().Set("X-Prometheus-Remote-Write-"+kind+"-Written", strconv.Itoa(n))
		}
	}
	if err != nil {
		s.failWrite(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// messageOf returns which message the headers announce. It is called before the body is read.
func messageOf(h http.Header) (string, error) {
	kind := h.Get("Content-Type")
	message := writeV1 // old senders give no type
	if kind != "" {
		media, params, err := mime.ParseMediaType(kind)
		if err != nil || media != protobufType {
			return "", unsupported("the Content-Type is %.100q; want %s", kind, protobufType)
		}
		if proto, ok := params["proto"]; ok {
			message = proto
		}
		if message != writeV1 && message != writeV2 {
			return "", unsupported("the message is %.100q; want %s or %s", message, writeV1, writeV2)
		}
	}
	return message, checkEncoding(h)
}

func checkEncoding(h http.Header) error {
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "snappy") {
		return unsupported("the Content-Encoding is %.100q; want snappy", encoding)
	}
	return nil
}

func unsupported(format string, values ...any) error {
	return &writeError{status: http.StatusUnsupportedMediaType, text: fmt.Sprintf(format, values...)}
}

var errBusyWrite = &writeError{status: http.StatusTooManyRequests, text: errBusy.text, wait: time.Second}

// errNoMemory is no 429: Prometheus drops what gets a 429, unless retry_on_http_429 is set.
var errNoMemory = &writeError{status: http.StatusServiceUnavailable, text: "too many bytes of requests at once", wait: time.Second}

// readSnappy reads the body of a request. The length that the body states is checked before anything is decompressed.
// The caller always calls release.
func (s *server) readSnappy(w http.ResponseWriter, r *http.Request, id tenant.ID) (message []byte, release func(), err error) {
	body, release, err := edge.ReadBody(http.MaxBytesReader(w, r.Body, s.limits.body), id, s.memory)
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, release, s.tooLarge()
		}
		if errors.Is(err, edge.ErrNoRoom) {
			return nil, release, errNoMemory
		}
		return nil, release, &writeError{status: http.StatusBadRequest, text: "the body cannot be read"}
	}
	compressed, err := io.ReadAll(body)
	if err != nil {
		return nil, release, err
	}
	n, err := snappy.DecodedLen(compressed)
	switch {
	case err != nil:
		return nil, release, &writeError{status: http.StatusBadRequest, text: "the body is not in the block format of snappy"}
	case int64(n) > s.limits.body:
		return nil, release, s.tooLarge()
	case !s.memory.Take(id, int64(n)):
		return nil, release, errNoMemory
	}
	ofBody := release
	release = func() { s.memory.Return(id, int64(n)); ofBody() }
	if message, err = snappy.Decode(nil, compressed); err != nil {
		return nil, release, &writeError{status: http.StatusBadRequest, text: "the body is not in the block format of snappy"}
	}
	parsed := parsedSize(message)
	switch {
	case parsed > bodies*s.limits.body/2:
		return nil, release, &writeError{status: http.StatusRequestEntityTooLarge, text: "the body has too many parts for the limit of -max-body; send it in several requests"}
	case !s.memory.Take(id, parsed):
		return nil, release, errNoMemory
	}
	ofMessage := release
	release = func() { s.memory.Return(id, parsed); ofMessage() }
	return message, release, nil
}

// What the parts of a message take in memory, about: a series, a query or metadata; a label; and a sample, an exemplar,
// a histogram or a matcher, with the point that is made of it.
const (
	seriesBytes = 200
	labelBytes  = 64
	sampleBytes = 200
)

// parsedSize returns about how much memory a message of remote write or remote read takes when it is parsed. Its parts
// can be empty and take two bytes each.
func parsedSize(message []byte) (size int64) {
	eachField(message, func(_ protowire.Number, part []byte) {
		size += seriesBytes
		eachField(part, func(number protowire.Number, inner []byte) {
			if number == 1 { // a label in version 1, and in version 2 the references to all labels, which take four times their length
				size += labelBytes + 4*int64(len(inner))
			} else { // what is in it takes at most about eight times its length
				size += sampleBytes + 8*int64(len(inner))
			}
		})
	})
	return size
}

// eachField calls visit with the fields of a message that have bytes, up to the first error: parsing the message
// reports it.
func eachField(message []byte, visit func(number protowire.Number, value []byte)) {
	for len(message) > 0 {
		number, wire, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, wire, message); n < 0 {
			return
		}
		if wire == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			visit(number, value)
		}
		message = message[n:]
	}
}

func (s *server) tooLarge() error {
	return &writeError{status: http.StatusRequestEntityTooLarge, text: fmt.Sprintf("the body has more than %d bytes, which is the limit of -max-body", s.limits.body)}
}

func (s *server) parseWrite(version string, message []byte, id tenant.ID) (*writeBatch, error) {
	batch, now, known := newWriteBatch(), s.now(), s.metadata.of(id)
	if version == writeV1 {
		var req prompb.WriteRequest
		if err := req.Unmarshal(message); err != nil {
			return nil, errors.New("the body is not a " + writeV1)
		}
		batch.fromV1(&req, now, known)
		return batch, nil
	}
	var req writev2.Request
	if err := req.Unmarshal(message); err != nil {
		return nil, errors.New("the body is not an " + writeV2)
	}
	return batch, batch.fromV2(&req, now, known)
}

// written is how many points of each kind were stored.
type written struct{ samples, histograms, exemplars int }

func (w *written) count(s *sample) {
	switch {
	case s.exemplar != nil:
		w.exemplars++
	case s.metadata != nil:
	case s.whole != nil || s.fraction != nil:
		w.histograms++
	default:
		w.samples++
	}
}

func (w *written) add(of written) {
	w.samples, w.histograms, w.exemplars = w.samples+of.samples, w.histograms+of.histograms, w.exemplars+of.exemplars
}

// storeBatch stores points, and returns the error that decides the response: one that lets the sender try again comes
// first.
func (s *server) storeBatch(ctx context.Context, id tenant.ID, b *writeBatch) (w written, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.timeout)
	defer cancel()
	outcomes, err := s.prom.schema.For(s.store, id).Via(s.writer).EnqueueMany(ctx, b.points)
	var again, never *writeError
	for i := range outcomes {
		if outcomes[i].Err == nil {
			w.count(&b.points[i].Value)
			w.add(b.again[i])
			continue
		}
		if e := b.errorOf(outcomes[i].Err); e.status >= 500 || e.status == http.StatusTooManyRequests {
			if again == nil || again.status < e.status {
				again = e
			}
		} else {
			never = e
			b.refused++
		}
	}
	for _, ls := range b.written {
		s.prom.noteWritten(id, ls)
	}
	if err != nil {
		s.metadata.forget(id) // which of it was stored is unknown
	}
	if errors.Is(err, tsdb.ErrErased) {
		s.forget(id)
	}
	switch {
	case again != nil:
		if again.status >= 500 {
			s.log.Error("remote write failed", "error", err)
		}
		return w, again
	case b.why != nil:
		return w, refusedPart(b.refused, &writeError{text: b.why.Error()})
	case never != nil:
		return w, refusedPart(b.refused, never)
	}
	return w, nil
}

// errorOf is writeErrorOf for a point of the batch. A request that is larger than the burst of the tenant's rate would
// be refused each time that it is sent, and block its sender for ever: it gets 413.
func (b *writeBatch) errorOf(err error) *writeError {
	over, ok := errors.AsType[*limit.Error](err)
	if !ok || over.Burst == 0 || len(b.points) == 1 || b.size(over.ID) <= over.Burst {
		return writeErrorOf(err)
	}
	text := fmt.Sprintf("the request is larger than the tenant's burst of %d for the limit %s; send smaller ones (max_samples_per_send)", over.Burst, over.ID)
	return &writeError{status: http.StatusRequestEntityTooLarge, text: text}
}

// size returns what the batch counts against a rate: its points, or their bytes.
func (b *writeBatch) size(of limit.ID) int64 {
	if of != limit.BytesPerSecond {
		return int64(len(b.points))
	}
	if b.bytes == 0 {
		var payload []byte
		for i := range b.points {
			payload, _ = sampleCodec{}.Append(payload[:0], b.points[i].Value) // it could be encoded before
			b.bytes += int64(len(payload))
		}
	}
	return b.bytes
}

// refusedPart is the error of a request of which a part is refused however often it is sent. It is 413 if smaller
// requests would not be.
func refusedPart(n int, why *writeError) error {
	status := http.StatusBadRequest
	if why.status == http.StatusRequestEntityTooLarge {
		status = why.status
	}
	return &writeError{status: status, text: fmt.Sprintf("%d points were refused and the others stored; the first: %s", n, why.text)}
}

// writeErrorOf returns the response to an error of a point. It hides the texts of unknown errors, and of values.
func writeErrorOf(err error) *writeError {
	if over, ok := errors.AsType[*limit.Error](err); ok {
		if over.ID == limit.PointBytes { // which the sender could try again for ever
			return &writeError{status: http.StatusBadRequest, text: fmt.Sprintf("a point is over the tenant's limit %s of %d", over.ID, over.Limit)}
		}
		return &writeError{status: http.StatusTooManyRequests, text: fmt.Sprintf("the tenant is over its limit %s of %d", over.ID, over.Limit), wait: over.RetryAfter}
	}
	if bad, ok := errors.AsType[*tsdb.InvalidError](err); ok && errors.Is(err, tsdb.ErrInvalid) {
		return &writeError{status: http.StatusBadRequest, text: "the " + bad.Field + " is refused; want " + bad.Limit}
	}
	response := errstatus.HTTP(err)
	e := &writeError{status: response.Status, text: response.Detail, wait: response.RetryAfter}
	switch {
	case e.status == http.StatusConflict, e.status == http.StatusGone, e.status == http.StatusRequestEntityTooLarge, e.status == http.StatusForbidden:
		e.status = http.StatusBadRequest // the sender is to drop the point
	case e.status == errstatus.StatusClientClosedRequest, e.status == http.StatusGatewayTimeout:
		e.status = http.StatusServiceUnavailable
	}
	return e
}

// failWrite responds to a remote write or remote read request with an error.
func (s *server) failWrite(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := errors.AsType[*writeError](err)
	if !ok {
		e = writeErrorOf(err)
		if e.status >= 500 {
			s.log.Error("request failed", "path", r.URL.Path, "error", err)
		}
	}
	if e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable {
		edge.RetryAfter(w, e.wait)
	}
	http.Error(w, e.text, e.status)
}
