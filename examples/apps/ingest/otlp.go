package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb/errstatus"
)

// origin says where a data point was in its request.
type origin struct {
	metric string
	number int // of all data points of the request, from 1
}

func (o origin) String() string { return fmt.Sprintf("data point %d, of %.128q", o.number, o.metric) }

// failure is why a request is not accepted, for both protocols.
type failure struct {
	status  int // of HTTP; the gRPC code follows from it
	message string
	// retry is when the client should send the request again. If it is 0, it should not.
	retry time.Duration
}

func busy(message string) *failure {
	return &failure{http.StatusServiceUnavailable, message, time.Second}
}

// export stores the data points of a request, in protobuf or in JSON. It returns once the outcome of each is known. The
// caller has found the tenant and bounded the body.
func (s *server) export(ctx context.Context, id tenant.ID, body []byte, isJSON bool) (*collectorpb.ExportMetricsServiceResponse, *failure) {
	// Decoded messages are larger than their bytes: they count towards the same memory.
	most := s.maxMessages()
	n, err := countMessages(body, isJSON, most)
	if err != nil {
		return nil, &failure{http.StatusBadRequest, "the body is not an ExportMetricsServiceRequest: " + err.Error(), 0}
	}
	if n > most {
		return nil, &failure{http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d messages; send fewer data points or attributes", most), 0}
	}
	if !s.memory.Take(id, int64(n)*messageBytes) {
		return nil, busy("too many data points of requests at once")
	}
	defer s.memory.Return(id, int64(n)*messageBytes)
	request := &collectorpb.ExportMetricsServiceRequest{}
	if isJSON {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(body, request)
	} else {
		err = proto.Unmarshal(body, request)
	}
	if err != nil {
		return nil, &failure{http.StatusBadRequest, "the body is not an ExportMetricsServiceRequest: " + err.Error(), 0}
	}
	release, fail := s.begin(id)
	if fail != nil {
		return nil, fail
	}
	defer release()
	whose, err := tenant.Bind(ctx, id)
	if err != nil {
		return nil, &failure{http.StatusForbidden, "the request is another tenant's already", 0}
	}
	whose, cancel := context.WithTimeout(whose, s.limits.Timeout)
	defer cancel()
	rep, err := s.in.export(whose, s.mapping, id, request)
	s.count(&s.metrics, rep)
	return s.outcome(id, rep, err)
}

// outcome turns a report into the response of the protocol: a client sends everything again after a failure with retry,
// and nothing after any other response.
func (s *server) outcome(id tenant.ID, rep report, err error) (*collectorpb.ExportMetricsServiceResponse, *failure) {
	over, isOver := errors.AsType[*limit.Error](err)
	switch {
	case isOver && outgrows(rep, over):
		return nil, &failure{http.StatusRequestEntityTooLarge, burstText(over), 0}
	case isOver:
		return nil, &failure{http.StatusTooManyRequests, fmt.Sprintf("over the tenant's limit %s; send all data points again", over.ID), max(time.Second, errstatus.HTTP(over).RetryAfter)}
	case err != nil:
		s.log.Error("data points not stored", "tenant", id.String(), "points", rep.lines, "stored", rep.stored, "error", err)
		return nil, busy("not all data points could be stored; send them again")
	}
	response := &collectorpb.ExportMetricsServiceResponse{}
	if rep.refused > 0 {
		why := rep.why()
		s.log.Warn("data points refused", "tenant", id.String(), "points", rep.lines, "stored", rep.stored, "refused", rep.refused, "why", why)
		response.PartialSuccess = &collectorpb.ExportMetricsPartialSuccess{RejectedDataPoints: int64(rep.refused), ErrorMessage: why}
	}
	return response, nil
}

// export stores the data points of a request for a tenant, and reports on each. A data point that cannot be stored does
// not affect the others. The error is errUndelivered.
func (in *ingester) export(ctx context.Context, m *inbound.Mapping, id tenant.ID, request *collectorpb.ExportMetricsServiceRequest) (rep report, err error) {
	x := &exporter{in: in, mapping: m, id: id, rep: &rep, batch: &inbound.Batch[origin]{}}
	for _, r := range request.GetResourceMetrics() {
		shared, badResource := mappedTags(m, nil, inbound.ResourcePrefix, r.GetResource().GetAttributes())
		for _, sm := range r.GetScopeMetrics() {
			tags, badScope := scopeTags(m, shared[:len(shared):len(shared)], sm.GetScope())
			for _, metric := range sm.GetMetrics() {
				if err := x.metric(ctx, metric, tags, errors.Join(badResource, badScope)); err != nil {
					return rep, err
				}
			}
		}
	}
	return rep, x.flush(ctx)
}

// exporter stores the data points of one request.
type exporter struct {
	in      *ingester
	mapping *inbound.Mapping
	id      tenant.ID
	rep     *report
	batch   *inbound.Batch[origin]
	point   inbound.PointBuilder
	tags    []tag // of the last data point
	read    int   // data points so far
}

// metric adds the data points of a metric to the batch. bad is why none of them can be stored.
func (x *exporter) metric(ctx context.Context, m *metricspb.Metric, tags []tag, bad error) error {
	var d *inbound.Dataset
	switch dataset := x.mapping.Metric(m.GetName()); {
	case bad != nil:
	case m.GetName() == "":
		bad = badValue("its metric has no name")
	case len(m.GetName()) > codec.MaxFieldName:
		bad = badValue("its metric's name has %d bytes, and %d is the most", len(m.GetName()), codec.MaxFieldName)
	case dataset == "":
		bad = &inbound.Error{Reason: "no store line names its metric", Err: errors.New("no line of the mapping stores this metric")}
	default:
		var err error
		if d, err = x.in.datasets.Find(ctx, x.id, dataset); err != nil {
			if !inbound.IsFinal(err) {
				return fmt.Errorf("%w: %w", errUndelivered, err)
			}
			bad = err
		}
	}
	if m.GetData() == nil && len(m.ProtoReflect().GetUnknown()) > 0 { // its data points cannot be counted: they are one
		x.rep.lines++
		x.read++
		from := origin{m.GetName(), x.read}
		x.rep.refuse(from.number, from, badValue("its metric is of a kind that is not known"))
	}
	return dataPoints(m, func(dp dataPoint) error {
		x.rep.lines++
		x.read++
		if err := pause(ctx, x.read); err != nil {
			return err
		}
		from := origin{m.GetName(), x.read}
		err := bad
		if err == nil {
			err = x.add(d, m.GetName(), dp, tags, from)
		}
		if err != nil {
			x.rep.refuse(from.number, from, err)
		}
		if x.batch.Full() {
			return x.flush(ctx)
		}
		return nil
	})
}

// add adds a data point to the batch. The error is an *inbound.Error.
func (x *exporter) add(d *inbound.Dataset, name string, dp dataPoint, tags []tag, from origin) error {
	at, err := dp.timeOf()
	if err != nil {
		return err
	}
	if dp.isEmpty() {
		x.rep.blank++
		x.rep.lines--
		return nil
	}
	if x.tags, err = mappedTags(x.mapping, append(x.tags[:0], tags...), "", dp.attributes); err != nil {
		return err
	}
	b, size := &x.point, pointBytes
	b.Reset(d)
	b.Stream(name, dp.kind)
	for _, t := range x.tags {
		if size += tagBytes + len(t.name) + len(t.value); size > maxAttributesBytes+maxAttributes*tagBytes {
			return badAttribute(fmt.Errorf("the attributes, with those of the resource and the scope, have more than %d bytes", maxAttributesBytes))
		}
		if err := b.Tag(t.name, t.value); err != nil {
			return err
		}
	}
	if err := dp.fields(fieldBuilder{b, name, dp.start}); err != nil {
		return err
	}
	p, err := b.Point(at)
	if err != nil {
		return err
	}
	replaced, err := x.batch.Add(p, from, size)
	if replaced {
		x.rep.replaced++
	}
	return err
}

// pointBytes and tagBytes are about what a point in a batch and a tag take, next to the tags' texts.
const (
	pointBytes = 200
	tagBytes   = 64
)

func (x *exporter) flush(ctx context.Context) error {
	b := x.batch
	x.batch = &inbound.Batch[origin]{}
	return storeBatch(ctx, x.in, b, x.id, x.rep, func(o origin) int { return o.number })
}
