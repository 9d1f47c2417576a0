package conformance

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
)

func TestGranularity(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultCodes)
		e.create("millis", "f")
		e.createMicros("micros", "f")
		write := func(table string, micros int64) error {
			_, err := e.data.MutateRow(e.ctx, &bigtablepb.MutateRowRequest{
				TableName: tableName(table), RowKey: []byte("r"),
				Mutations: []*bigtablepb.Mutation{setCell("f", "q", micros, "v")},
			})
			return err
		}
		for _, micros := range []int64{0, 1000, 253402300799999000} {
			if err := write("millis", micros); err != nil {
				t.Errorf("a timestamp in whole milliseconds: got %v, want nil", err)
			}
		}
		for _, micros := range []int64{0, 1, 1001, 253402300799999999} {
			if err := write("micros", micros); err != nil {
				t.Errorf("a timestamp in microseconds, in a table of microseconds: got %v, want nil", err)
			}
		}
		wantCode(t, write("millis", 1001), codes.InvalidArgument, "a timestamp finer than the table's granularity is accepted")
		wantCode(t, write("millis", -1000), codes.InvalidArgument, "a negative time is taken")
		wantCode(t, write("micros", -2), codes.InvalidArgument, "a negative time is taken")
	})
}

// A timestamp that the client generated is rounded. One that the user chose is refused if it is too fine.
func TestAutomaticTimestampIsRounded(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.create("t", "f")
		m := setCell("f", "q", 1234567, "v")
		m.TimestampOrigin = bigtablepb.Mutation_CLIENT_AUTO_GENERATED
		if _, err := e.data.MutateRow(e.ctx, &bigtablepb.MutateRowRequest{
			TableName: tableName("t"), RowKey: []byte("r"),
			Mutations: []*bigtablepb.Mutation{m},
		}); err != nil {
			t.Fatal(err)
		}
		want(t, e.all(tbl), "r f:q@1234=v", "an automatic timestamp is not rounded to the table's granularity")
	})
}

func TestServerTime(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultServerTime)
		millis, micros := e.create("millis", "f"), e.createMicros("micros", "f")
		e.clock.advance(1234567 * time.Microsecond)
		now := int64(e.clock.timestamp())
		m := bigtable.NewMutation()
		m.Set("f", "q", bigtable.ServerTime, []byte("v"))
		e.apply(millis, "r", m)
		e.apply(micros, "r", m)
		want(t, e.all(millis), fmt.Sprintf("r f:q@%d=v", now/1000), "server time is not in whole milliseconds")
		want(t, e.all(micros), fmt.Sprintf("r f:q@%dµs=v", now), "server time is not in microseconds")
	})
}
