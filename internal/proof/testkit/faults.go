package testkit

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ByFaults reports whether injected faults with these codes explain an error: it is that of a context, or wraps a
// status with one of the codes.
func ByFaults(err error, of ...codes.Code) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	all := []error{err}
	for i := 0; i < len(all); i++ {
		if st, ok := all[i].(interface{ GRPCStatus() *status.Status }); ok {
			if code := st.GRPCStatus().Code(); code == codes.Canceled || slices.Contains(of, code) {
				return true
			}
		}
		switch e := all[i].(type) {
		case interface{ Unwrap() error }:
			if inner := e.Unwrap(); inner != nil {
				all = append(all, inner)
			}
		case interface{ Unwrap() []error }:
			all = append(all, e.Unwrap()...)
		}
	}
	return false
}
