package conform

import (
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

var aggregateTests = []test{
	{
		name: "aggregates/sum, min and max", claim: "cells add up, and keep the least and the greatest number", source: aggregation, want: "OK: sum:n=7 min:n=-3 max:n=10", aggregates: true,
		see: func(e *env) (string, error) {
			if err := e.write("r", addAll(10)...); err != nil {
				return "", err
			}
			return e.after("r", e.write("r", addAll(-3)...))
		},
	},
	{
		name: "aggregates/in bulk", claim: "additions in one bulk write all count", source: aggregation, want: "OK OK: sum:n=3", aggregates: true,
		see: func(e *env) (string, error) {
			got, err := e.bulk(entry("r", nil, add(sums, 1)), entry("r", nil, add(sums, 2)))
			if err != nil {
				return "", err
			}
			row, err := e.row("r")
			return strings.Join(got, " ") + ": " + row, err
		},
	},
	{
		name: "aggregates/set", claim: "a family that aggregates refuses SetCell", source: aggregation, want: "InvalidArgument", aggregates: true,
		see: func(e *env) (string, error) { return code(e.write("r", setCell(sums, "n", 1000, make([]byte, 8)))) },
	},
	{
		name: "aggregates/plain family", claim: "a family that does not aggregate refuses AddToCell", source: dataAPI + "#mutation", want: "InvalidArgument",
		see: func(e *env) (string, error) { return code(e.write("r", add(plain, 1))) },
	},
	{
		name: "aggregates/delete cells", claim: "cells that aggregate can be deleted by their timestamps", source: aggregation, want: "OK: min:n=5 max:n=5", aggregates: true,
		see: func(e *env) (string, error) {
			if err := e.write("r", addAll(5)...); err != nil {
				return "", err
			}
			return e.after("r", e.write("r", deleteRange(sums)))
		},
	},
	{
		name: "aggregates/delete family", claim: "a family that aggregates can be deleted from a row", source: aggregation, want: "OK: min:n=5 max:n=5", aggregates: true,
		see: func(e *env) (string, error) {
			if err := e.write("r", addAll(5)...); err != nil {
				return "", err
			}
			return e.after("r", e.write("r", deleteFamily(sums)))
		},
	},
}

const idempotency = dataAPI + "#idempotency"

// twice makes a write twice with the same token and start time.
func (e *env) twice(row string, muts ...*bigtablepb.Mutation) error {
	i := token("token of "+row, time.Now())
	if err := e.writeOnce(row, i, muts...); err != nil {
		return err
	}
	return e.writeOnce(row, i, muts...)
}

var tokenTests = []test{
	{
		name: "tokens/one row", claim: "an addition that is repeated with its token counts once", source: idempotency, want: "OK: sum:n=5", aggregates: true,
		see: func(e *env) (string, error) { return e.after("r", e.twice("r", add(sums, 5))) },
	},
	{
		name: "tokens/bulk", claim: "an entry of a bulk write that is repeated with its token counts once", source: idempotency, want: "OK OK: sum:n=5 sum:n=7", aggregates: true,
		see: func(e *env) (string, error) {
			start := time.Now()
			var got []string
			for range 2 {
				var err error
				if got, err = e.bulk(entry("a", token("token of a", start), add(sums, 5)), entry("b", token("token of b", start), add(sums, 7))); err != nil {
					return "", err
				}
			}
			a, err := e.row("a")
			if err != nil {
				return "", err
			}
			b, err := e.row("b")
			return fmt.Sprintf("%s: %s %s", strings.Join(got, " "), a, b), err
		},
	},
	{
		name: "tokens/another row", claim: "a token belongs to its row", source: idempotency, want: "OK: sum:n=5", aggregates: true,
		see: func(e *env) (string, error) {
			i := token("token of two rows", time.Now())
			if err := e.writeOnce("a", i, add(sums, 5)); err != nil {
				return "", err
			}
			return e.after("b", e.writeOnce("b", i, add(sums, 5)))
		},
	},
	{
		name: "tokens/other token", claim: "the same addition with another token counts again", source: idempotency, want: "OK: sum:n=10", aggregates: true,
		see: func(e *env) (string, error) {
			if err := e.writeOnce("r", token("first token", time.Now()), add(sums, 5)); err != nil {
				return "", err
			}
			return e.after("r", e.writeOnce("r", token("second token", time.Now()), add(sums, 5)))
		},
	},
	{
		name: "tokens/deleted", claim: "a repetition is recognized after the row was deleted", source: idempotency, want: "OK: nothing", aggregates: true,
		see: func(e *env) (string, error) {
			i := token("token of a deleted row", time.Now())
			if err := e.writeOnce("r", i, add(sums, 5)); err != nil {
				return "", err
			}
			if err := e.write("r", deleteFamily(sums)); err != nil {
				return "", err
			}
			return e.after("r", e.writeOnce("r", i, add(sums, 5)))
		},
	},
	{
		name: "tokens/other mutations", claim: "a repetition with a deletion before the addition loses nothing", source: idempotency, want: "OK: sum:n=5", aggregates: true,
		see: func(e *env) (string, error) { return e.after("r", e.twice("r", deleteRange(sums), add(sums, 5))) },
	},
	{
		name: "tokens/too late", claim: "an addition that was first sent 20 minutes ago is refused", source: idempotency, want: "FailedPrecondition: nothing", aggregates: true,
		see: func(e *env) (string, error) {
			return e.after("r", e.writeOnce("r", token("a late token", time.Now().Add(-20*time.Minute)), add(sums, 5)))
		},
	},
	{
		name: "tokens/short", claim: "a token of less than 8 bytes is refused", source: idempotency, want: "InvalidArgument", aggregates: true,
		see: func(e *env) (string, error) {
			return code(e.writeOnce("r", &bigtablepb.Idempotency{Token: []byte("1234567")}, add(sums, 5)))
		},
	},
}
