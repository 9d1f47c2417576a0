package web

import (
	"encoding/csv"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// maxRows is how many points a download has at most.
const maxRows = 1_000_000

// csv answers with the points of entities as CSV (RFC 4180), entity by entity, oldest first. If reading fails after a
// part has been sent, or there are too many points, the connection is cut, so that no browser takes that part for the
// whole.
func (s *Console) csv(w http.ResponseWriter, r request) error {
	d, repo, err := s.dataset(r)
	if err != nil {
		return err
	}
	entities, names := r.params.entities(maxEntities), r.params.fields(maxFields)
	_, _, in := r.params.interval()
	if err := r.params.check(); err != nil {
		return err
	}
	header := []string{}
	for _, f := range d.described.Key {
		header = append(header, cell(f.Name))
	}
	header = append(header, "time")
	for _, name := range names {
		header = append(header, cell(shownField(name)))
	}
	deadlines := http.NewResponseController(w)
	out := csv.NewWriter(w)
	sent := 0
	begin := func() {
		w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
		w.Header().Set("Content-Disposition", `attachment; filename="`+fileName(d.described.Name, time.Now())+`"`)
		_ = out.Write(header)
	}
	for _, e := range entities {
		parts := d.parts(e)
		for p, err := range repo.Range(r.Context(), e, in, tsdb.OldestFirst) {
			if err == nil && sent == maxRows {
				err = errors.New("more than 1,000,000 points")
			}
			if err != nil && !bad(err) {
				if sent == 0 {
					return err
				}
				s.note(r.Request, err)
				panic(http.ErrAbortHandler)
			}
			if sent == 0 {
				begin()
			}
			if sent%1000 == 0 {
				_ = deadlines.SetWriteDeadline(time.Now().Add(sendTime)) // some writers of tests have none
			}
			sent++
			line := make([]string, 0, len(header))
			for _, part := range parts {
				line = append(line, cell(part))
			}
			line = append(line, instant.Text(p.Time))
			for _, name := range names {
				v, _ := p.Value.Lookup(name)
				line = append(line, csvValue(v))
			}
			if out.Write(line) != nil {
				return nil // the client has gone
			}
		}
	}
	if sent == 0 {
		begin()
	}
	out.Flush()
	return nil
}

// csvValue returns a value with all its digits, "" for none and for null.
func csvValue(v codec.Value) string {
	if text, ok := v.Text(); ok {
		return cell(text)
	}
	switch v.Kind() {
	case codec.KindInvalid, codec.KindNull:
		return ""
	}
	return cell(v.String())
}

// cell returns text that no spreadsheet takes for a formula. A number stays one.
func cell(text string) string {
	if text == "" || !strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}

// fileName returns a name of letters, digits, dots, dashes and underscores.
func fileName(dataset string, now time.Time) string {
	safe := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			return c
		}
		return '_'
	}, dataset)
	return safe + "-" + now.UTC().Format("20060102T150405Z") + ".csv"
}
