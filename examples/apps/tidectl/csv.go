package main

import (
	"encoding/csv"
	"io"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
)

// csvSheet writes a table as CSV, as in RFC 4180, except that lines end with \n alone: otherwise package csv would
// change values that contain line ends.
type csvSheet struct{ to *csv.Writer }

func newCSV(out io.Writer) *csvSheet { return &csvSheet{csv.NewWriter(out)} }

func (s *csvSheet) begin(columns []column) error {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return s.to.Write(names)
}

func (s *csvSheet) row(of []codec.Value) error {
	texts := make([]string, len(of))
	for i, v := range of {
		if at, isTime := v.Time(); isTime {
			texts[i] = aggregate.Instant(at)
		} else {
			texts[i] = textOf(v)
		}
	}
	return s.to.Write(texts)
}

// end writes what is left. After an error, the last line says that rows are missing. It has only one field, so that
// strict readers refuse the file.
func (s *csvSheet) end(failed error) error {
	if failed != nil {
		_ = s.to.Write([]string{"incomplete: " + failed.Error()})
	}
	s.to.Flush()
	if failed != nil {
		return failed
	}
	return s.to.Error()
}
