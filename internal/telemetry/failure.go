package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// failure is how something failed, in few different values.
type failure struct {
	kind string // error.type
	code string // db.response.status_code; empty where no answer came

	refused bool // by the SDK itself, for a reason that has a name
}

func (f failure) attributes() []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 1, 4)
	attrs[0] = attribute.String(attrError, f.kind)
	if f.code != "" {
		attrs = append(attrs, attribute.String(attrStatus, f.code))
	}
	return attrs
}

// failureOf says how an error failed: by the code of the gRPC status in it, else by the type that it says it has, else by what
// the store knows of it; of several errors the first.
func (p *Probe) failureOf(err error) failure {
	if p.conf.First != nil {
		err = p.conf.First(err)
	}
	switch c, kind := said(err); {
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

// failureOf says how the operation failed. Where it says no more than why its context has ended, that is a cancellation or a
// deadline like any other, whatever cause the program has given: signal.NotifyContext gives one for each signal.
func (o *Op) failureOf(err error) failure {
	f := o.probe.failureOf(err)
	if ended := o.ctx.Err(); f.kind == Other && ended != nil && errors.Is(err, context.Cause(o.ctx)) {
		return o.probe.failureOf(ended)
	}
	return f
}

// said returns what an error says of itself: the code of a gRPC status, or its type. One with a type hides what it wraps, and
// of errors side by side a status goes before a type.
func said(err error) (code codes.Code, kind string) {
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
				c, k := said(one)
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

// canceled is the name of the code of what the caller has broken off.
var canceled = codeName(codes.Canceled)

// codeName returns the name of a gRPC code as the protocol writes it.
func codeName(c codes.Code) string {
	if name, ok := code.Code_name[int32(c)]; ok {
		return name
	}
	return Other
}
