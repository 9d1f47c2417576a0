package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// failure describes a failure with few distinct values.
type failure struct {
	kind string // error.type
	code string // db.response.status_code; empty if the service did not answer

	refused bool // by the SDK itself, for a named reason
}

func (f failure) attributes() []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 1, 4)
	attrs[0] = attribute.String(attrError, f.kind)
	if f.code != "" {
		attrs = append(attrs, attribute.String(attrStatus, f.code))
	}
	return attrs
}

// failureOf classifies an error: by the code of a gRPC status in it, else by its own error type, else by Config.Kind.
// Of several errors the first counts.
func (p *Probe) failureOf(err error) failure {
	if p.conf.First != nil {
		err = p.conf.First(err)
	}
	switch c, kind := classify(err); {
	case c != codes.OK:
		name := codeName(c)
		return failure{kind: name, code: name}
	case kind != "":
		return failure{kind: kind}
	}
	if p.conf.Kind != nil {
		if kind := p.conf.Kind(err); kind != "" {
			return failure{kind: kind, refused: p.conf.Unreadable == nil || !p.conf.Unreadable(err)}
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return failure{kind: codeName(codes.DeadlineExceeded)}
	case errors.Is(err, context.Canceled):
		return failure{kind: canceled}
	}
	return failure{kind: Other}
}

// failureOf classifies the operation's error. If the error only says why its context has ended, it counts as a plain
// cancellation or deadline, whatever cause the program has set: signal.NotifyContext sets another cause for each
// signal.
func (o *Op) failureOf(err error) failure {
	f := o.probe.failureOf(err)
	if ended := o.ctx.Err(); f.kind == Other && ended != nil && errors.Is(err, context.Cause(o.ctx)) {
		return o.probe.failureOf(ended)
	}
	return f
}

// classify returns an error's own classification: the code of a gRPC status, or its type. An error with a type hides
// what it wraps. Among joined errors a status takes precedence over a type.
func classify(err error) (code codes.Code, kind string) {
	for err != nil {
		if e, ok := err.(interface{ ErrorType() string }); ok && e.ErrorType() != "" {
			return codes.OK, e.ErrorType()
		}
		if e, ok := err.(interface{ GRPCStatus() *status.Status }); ok && e.GRPCStatus().Code() != codes.OK {
			return e.GRPCStatus().Code(), ""
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, one := range e.Unwrap() {
				c, k := classify(one)
				if c != codes.OK {
					return c, ""
				}
				if kind == "" {
					kind = k
				}
			}
			return codes.OK, kind
		default:
			return codes.OK, ""
		}
	}
	return codes.OK, ""
}

// canceled is the name of the code for calls that the caller cancelled.
var canceled = codeName(codes.Canceled)

// codeName returns the name of a gRPC code as the protocol writes it.
func codeName(c codes.Code) string {
	if name, ok := code.Code_name[int32(c)]; ok {
		return name
	}
	return Other
}
