package conform

import (
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// letters are keys in their order, as bytes.
var letters = []string{"\x00", "\x00\x01", "A", "a", "a\x00", "a\x00b", "b", "\x7f", "\xc3\xa4", "\xff", "\xff\xff"}

var rowTests = []test{
	{
		name: "keys/order", claim: "rows are read in the order of their bytes", source: readPage, want: "in order",
		see: func(e *env) (string, error) {
			var entries []*bigtablepb.MutateRowsRequest_Entry
			for _, k := range slices.Backward(letters) {
				entries = append(entries, entry(k, nil, set("v")))
			}
			if _, err := e.bulk(entries...); err != nil {
				return "", err
			}
			got, err := e.keys(bigtable.PrefixRange(e.prefix))
			if err == nil && slices.Equal(got, letters) {
				return "in order", nil
			}
			return fmt.Sprintf("%q", got), err
		},
	},
	{
		name: "keys/range", claim: "a range has its start and not its end", source: dataAPI + "#rowrange", want: "a a\\x00 a\\x00b",
		see: func(e *env) (string, error) {
			for _, k := range letters {
				if err := e.write(k, set("v")); err != nil {
					return "", err
				}
			}
			got, err := e.keys(bigtable.NewRange(e.prefix+"a", e.prefix+"b"))
			return strings.ReplaceAll(strings.Join(got, " "), "\x00", `\x00`), err
		},
	},
	{
		name: "keys/reversed", claim: "a reversed read of a range with a limit begins at its end", source: dataAPI + "#readrowsrequest", want: "c b",
		see: func(e *env) (string, error) {
			for _, k := range []string{"a", "b", "c", "d"} {
				if err := e.write(k, set("v")); err != nil {
					return "", err
				}
			}
			got, err := e.keys(bigtable.NewRange(e.prefix+"a", e.prefix+"d"), bigtable.ReverseScan(), bigtable.LimitRows(2))
			return strings.Join(got, " "), err
		},
	},
	{
		name: "keys/longest", claim: "a row key may have 4,096 bytes", source: dataAPI + "#row", want: "OK, 4096 bytes read",
		see: func(e *env) (string, error) {
			key := strings.Repeat("k", 4096-len(e.prefix))
			got, err := code(e.write(key, set("v")))
			if err != nil || got != "OK" {
				return got, err
			}
			keys, err := e.keys(bigtable.PrefixRange(e.prefix))
			return fmt.Sprintf("OK, %d bytes read", len(strings.Join(keys, ""))+len(e.prefix)), err
		},
	},
	{
		name: "keys/too long", claim: "a row key of 4,097 bytes is refused", source: dataAPI + "#row", want: "InvalidArgument",
		see: func(e *env) (string, error) { return code(e.write(strings.Repeat("k", 4097-len(e.prefix)), set("v"))) },
	},
	{
		name: "keys/empty", claim: "an empty row key is refused", source: dataAPI + "#row", want: "InvalidArgument",
		see: func(e *env) (string, error) { return code(e.send("", nil, set("v"))) },
	},
	{
		name: "sizes/qualifier", claim: "a column qualifier may have 16 KiB", source: dataAPI + "#column", want: "OK",
		see: func(e *env) (string, error) {
			return code(e.write("r", setCell(plain, strings.Repeat("q", 16<<10), 1000, nil)))
		},
	},
	{
		name: "sizes/qualifier too long", claim: "a longer qualifier is refused", source: dataAPI + "#column", want: "InvalidArgument",
		see: func(e *env) (string, error) {
			return code(e.write("r", setCell(plain, strings.Repeat("q", 16<<10+1), 1000, nil)))
		},
	},
	{
		name: "sizes/filter", claim: "a row filter of more than 20,480 bytes is refused", source: dataAPI + "#rowfilter", want: "InvalidArgument",
		see: func(e *env) (string, error) {
			var all []bigtable.Filter
			for i := range 1000 {
				all = append(all, bigtable.ColumnFilter(fmt.Sprintf("column-%020d", i)))
			}
			_, err := e.keys(bigtable.PrefixRange(e.prefix), bigtable.RowFilter(bigtable.InterleaveFilters(all...)))
			return code(err)
		},
	},
	{
		name: "sizes/cell", claim: "a cell of 10 MiB is stored and read", source: quotas, want: "OK, 10485760 bytes read", large: true,
		see: func(e *env) (string, error) {
			got, err := code(e.write("r", setCell(plain, "q", 1000, make([]byte, 10<<20))))
			if err != nil || got != "OK" {
				return got, err
			}
			r, err := e.open().ReadRow(e.ctx, e.prefix+"r")
			n := 0
			for _, c := range r[plain] {
				n += len(c.Value)
			}
			return fmt.Sprintf("OK, %d bytes read", n), err
		},
	},
	{
		name: "sizes/mutations", claim: "more than 100,000 mutations of a row are refused", source: dataAPI + "#mutaterowrequest", want: "InvalidArgument", large: true,
		see: func(e *env) (string, error) {
			return code(e.write("r", slices.Repeat([]*bigtablepb.Mutation{set("")}, 100_001)...))
		},
	},
	{
		name: "reads/missing row", claim: "a row that does not exist is read as nothing", source: readPage, want: "nothing",
		see: func(e *env) (string, error) { return e.row("missing") },
	},
	{
		name: "reads/narrowed", claim: "a filter for timestamps has the start and not the end", source: dataAPI + "#timestamprange", want: "3000 2000",
		see: func(e *env) (string, error) {
			return e.timestamps(bigtable.TimestampRangeFilterMicros(2000, 4000))
		},
	},
	{
		name: "reads/newest", claim: "a filter for the newest cells of a column passes as many, the newest first", source: dataAPI + "#rowfilter", want: "4000 3000",
		see: func(e *env) (string, error) { return e.timestamps(bigtable.LatestNFilter(2)) },
	},
}
