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
	var answer interface{ GRPCStatus() *status.Status }
	if errors.As(err, &answer) {
		if s := answer.GRPCStatus(); s.Code() != codes.OK {
			name := codeName(s.Code())
			return failure{kind: name, code: name}
		}
	}
	var typed interface{ ErrorType() string }
	if errors.As(err, &typed) {
		if kind := typed.ErrorType(); kind != "" {
			return failure{kind: kind}
		}
	}
	if p.conf.Kind != nil {
		if kind := p.conf.Kind(err); kind != "" {
			return failure{kind: kind, refused: p.conf.Unreadable == nil || !p.conf.Unreadable(err)}
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return failure{kind: "context.DeadlineExceeded"}
	case errors.Is(err, context.Canceled):
		return failure{kind: gone}
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

// What the caller has broken off: the name of its code, and its type where no answer came.
var canceled = codeName(codes.Canceled)

const gone = "context.Canceled"

// codeName returns the name of a gRPC code as the protocol writes it.
func codeName(c codes.Code) string {
	if name, ok := code.Code_name[int32(c)]; ok {
		return name
	}
	return Other
}
