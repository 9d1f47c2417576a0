package main

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net/http"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/tidemark-go/tidemark/tenant"
)

// streamedType is the type of a streamed response to remote read.
const streamedType = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse"

// remoteRead answers POST of remote read, as samples or streamed as chunks, whichever the client prefers.
func (s *server) remoteRead(w http.ResponseWriter, r *http.Request) {
	id, _ := tenant.FromContext(r.Context())
	if err := checkEncoding(r.Header); err != nil {
		s.failWrite(w, r, err)
		return
	}
	message, release, err := s.readSnappy(w, r, id)
	defer release()
	if err != nil {
		s.failWrite(w, r, err)
		return
	}
	if !s.gate.enter(id) {
		s.failWrite(w, r, errBusyWrite)
		return
	}
	defer s.gate.leave(id)
	if err := s.admit(r.Context(), id); err != nil {
		s.failRead(w, r, err)
		return
	}
	var req prompb.ReadRequest
	if err := req.Unmarshal(message); err != nil {
		s.failWrite(w, r, &writeError{status: http.StatusBadRequest, text: "the body is not a prometheus.ReadRequest"})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.timeout)
	defer cancel()
	q := &querier{queryable: &queryable{id, s.sources, newBudget(int64(s.limits.series), int64(s.limits.samples)), s.limits.lookback}}
	if prefersChunks(req.AcceptedResponseTypes) {
		s.streamChunks(ctx, w, r, q, req.Queries)
		return
	}
	var response prompb.ReadResponse
	for _, query := range req.Queries {
		found, err := selectedBy(ctx, q, query)
		if err != nil {
			s.failRead(w, r, err)
			return
		}
		response.Results = append(response.Results, resultOf(found))
	}
	body, err := response.Marshal()
	if err != nil {
		s.failRead(w, r, err)
		return
	}
	w.Header().Set("Content-Type", protobufType)
	w.Header().Set("Content-Encoding", "snappy")
	_, _ = w.Write(snappy.Encode(nil, body)) // the client may have gone
}

// failRead responds with an error, which may be one of a query.
func (s *server) failRead(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(r.Context().Err(), context.Canceled) {
		return
	}
	s.forgetErased(r, err)
	e := apiErrorOf(err)
	if e.status >= http.StatusInternalServerError && e.cause != nil {
		s.log.Error("remote read failed", "error", e.cause)
	}
	s.failWrite(w, r, &writeError{status: min(e.status, http.StatusServiceUnavailable), text: e.text, wait: e.wait})
}

// prefersChunks reports whether the first type that the client names, and this server knows, is that of streamed
// chunks.
func prefersChunks(types []prompb.ReadRequest_ResponseType) bool {
	for _, t := range types {
		switch t {
		case prompb.ReadRequest_STREAMED_XOR_CHUNKS:
			return true
		case prompb.ReadRequest_SAMPLES:
			return false
		}
	}
	return false
}

func selectedBy(ctx context.Context, q *querier, query *prompb.Query) ([]*selected, error) {
	matchers := make([]*labels.Matcher, len(query.GetMatchers()))
	for i, m := range query.GetMatchers() {
		kind, ok := matcherTypes[m.Type]
		if !ok {
			return nil, badData(errors.New("a matcher has no known type"))
		}
		var err error
		if matchers[i], err = labels.NewMatcher(kind, m.Name, m.Value); err != nil {
			return nil, badData(err)
		}
	}
	return q.samples(ctx, query.StartTimestampMs, query.EndTimestampMs, true, matchers)
}

var matcherTypes = map[prompb.LabelMatcher_Type]labels.MatchType{
	prompb.LabelMatcher_EQ:  labels.MatchEqual,
	prompb.LabelMatcher_NEQ: labels.MatchNotEqual,
	prompb.LabelMatcher_RE:  labels.MatchRegexp,
	prompb.LabelMatcher_NRE: labels.MatchNotRegexp,
}

func resultOf(found []*selected) *prompb.QueryResult {
	result := new(prompb.QueryResult)
	for _, s := range found {
		ts := &prompb.TimeSeries{Labels: prompb.FromLabels(s.labels, nil)}
		for it := s.Iterator(nil); ; {
			switch it.Next() {
			case chunkenc.ValFloat:
				t, v := it.At()
				ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: t, Value: v})
				continue
			case chunkenc.ValHistogram:
				t, h := it.AtHistogram(nil)
				ts.Histograms = append(ts.Histograms, prompb.FromIntHistogram(t, h))
				continue
			case chunkenc.ValFloatHistogram:
				t, h := it.AtFloatHistogram(nil)
				ts.Histograms = append(ts.Histograms, prompb.FromFloatHistogram(t, h))
				continue
			}
			break
		}
		result.Timeseries = append(result.Timeseries, ts)
	}
	return result
}

// mostInChunk is the number of samples in a chunk, and mostInFrame the bytes of the chunks in a frame, unless one chunk
// is larger. Clients refuse frames over 50 MB.
const (
	mostInChunk = 120
	mostInFrame = 1 << 20
)

// streamChunks answers with frames. An error after the first one cuts the connection, so that the client does not take
// what came before it for the whole.
func (s *server) streamChunks(ctx context.Context, w http.ResponseWriter, r *http.Request, q *querier, queries []*prompb.Query) {
	began := false
	for i, query := range queries {
		found, err := selectedBy(ctx, q, query)
		for _, one := range found {
			if err != nil {
				break
			}
			if !began {
				w.Header().Set("Content-Type", streamedType)
				began = true
			}
			err = writeChunks(w, int64(i), one)
		}
		switch {
		case err != nil && began:
			panic(http.ErrAbortHandler)
		case err != nil:
			s.failRead(w, r, err)
			return
		}
	}
	if !began {
		w.Header().Set("Content-Type", streamedType)
	}
}

// writeChunks writes the frames of a series.
func writeChunks(w io.Writer, query int64, one *selected) error {
	chunks, err := chunksOf(one)
	if err != nil {
		return err
	}
	for len(chunks) > 0 {
		n := 1
		for size := len(chunks[0].Data); n < len(chunks) && size+len(chunks[n].Data) <= mostInFrame; n++ {
			size += len(chunks[n].Data)
		}
		response := prompb.ChunkedReadResponse{
			QueryIndex:    query,
			ChunkedSeries: []*prompb.ChunkedSeries{{Labels: prompb.FromLabels(one.labels, nil), Chunks: chunks[:n]}},
		}
		chunks = chunks[n:]
		data, err := response.Marshal()
		if err != nil {
			return err
		}
		frame := binary.AppendUvarint(nil, uint64(len(data)))
		frame = binary.BigEndian.AppendUint32(frame, crc32.Checksum(data, castagnoli))
		if _, err := w.Write(append(frame, data...)); err != nil {
			return err
		}
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunksOf returns the samples of a series as chunks, each with one kind of them.
func chunksOf(one *selected) ([]prompb.Chunk, error) {
	var all []prompb.Chunk
	c := chunkWriter{all: &all}
	for it := one.Iterator(nil); ; {
		kind := it.Next()
		if kind == chunkenc.ValNone {
			c.flush()
			return all, nil
		}
		if err := c.add(kind, it); err != nil {
			return nil, err
		}
	}
}

// chunkWriter fills one chunk after the other.
type chunkWriter struct {
	all        *[]prompb.Chunk
	kind       chunkenc.ValueType
	chunk      chunkenc.Chunk
	app        chunkenc.Appender
	from, last int64
}

func (c *chunkWriter) flush() {
	if c.chunk != nil {
		*c.all = append(*c.all, prompb.Chunk{
			MinTimeMs: c.from, MaxTimeMs: c.last, Type: chunkTypes[c.kind], Data: c.chunk.Bytes(),
		})
	}
	c.chunk = nil
}

var chunkTypes = map[chunkenc.ValueType]prompb.Chunk_Encoding{
	chunkenc.ValFloat:          prompb.Chunk_XOR,
	chunkenc.ValHistogram:      prompb.Chunk_HISTOGRAM,
	chunkenc.ValFloatHistogram: prompb.Chunk_FLOAT_HISTOGRAM,
}

// begin begins a chunk.
func (c *chunkWriter) begin(kind chunkenc.ValueType, t int64) (err error) {
	c.flush()
	c.kind, c.from = kind, t
	switch kind {
	case chunkenc.ValHistogram:
		c.chunk = chunkenc.NewHistogramChunk()
	case chunkenc.ValFloatHistogram:
		c.chunk = chunkenc.NewFloatHistogramChunk()
	default:
		c.chunk = chunkenc.NewXORChunk()
	}
	c.app, err = c.chunk.Appender()
	return err
}

func (c *chunkWriter) add(kind chunkenc.ValueType, it chunkenc.Iterator) error {
	t := it.AtT()
	if c.chunk == nil || kind != c.kind || c.chunk.NumSamples() >= mostInChunk {
		if err := c.begin(kind, t); err != nil {
			return err
		}
	}
	var next chunkenc.Chunk
	var recoded bool
	var app chunkenc.Appender
	var err error
	switch kind {
	case chunkenc.ValHistogram:
		_, h := it.AtHistogram(nil)
		next, recoded, app, err = c.app.AppendHistogram(nil, 0, t, h, false)
	case chunkenc.ValFloatHistogram:
		_, h := it.AtFloatHistogram(nil)
		next, recoded, app, err = c.app.AppendFloatHistogram(nil, 0, t, h, false)
	default:
		_, v := it.At()
		c.app.Append(0, t, v)
		c.last = t
		return nil
	}
	if err != nil {
		return err
	}
	if next != nil { // the sample is in another chunk: the same one with more buckets, or a new one
		if !recoded {
			c.flush()
			c.from = t
		}
		c.chunk = next
	}
	c.app, c.last = app, t
	return nil
}
