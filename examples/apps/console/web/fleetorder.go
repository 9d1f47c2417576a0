package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// order is the order of the rows of a list. The zero order is that of their keys.
type order struct {
	by   orderBy
	at   int // the number of the field
	down bool
}

type orderBy uint8

const (
	byName orderBy = iota
	byAge
	byField
)

// orderOf reads "name", "age" or a field, which may be in backquotes, with "-" before it for the opposite order. It
// adds the field to the names, which a list reads.
func orderOf(text string, names []string) ([]string, order, error) {
	var o order
	text, o.down = strings.CutPrefix(text, "-")
	switch text {
	case "name":
		return names, o, nil
	case "age":
		o.by = byAge
		return names, o, nil
	}
	field, err := parseField(strings.Trim(text, "`"))
	if o.by, o.at = byField, slices.Index(names, field); o.at < 0 {
		names, o.at = append(names, field), len(names)
	}
	return names, o, err
}

// compare orders rows that are in the order of their keys by a stable sort. Rows without a value are last in both
// directions.
func (o order) compare(a, b row) int {
	by := 0
	switch o.by {
	case byAge:
		by = cmp.Compare(b.Time, a.Time)
	case byField:
		x, y := sortKeyOf(a.Values[o.at]), sortKeyOf(b.Values[o.at])
		by = cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.number, y.number), strings.Compare(x.text, y.text))
		if max(x.kind, y.kind) == missing {
			return by
		}
	case byName:
		if !o.down {
			return 0
		}
		by = a.Entity.Compare(b.Entity)
	}
	if o.down {
		return -by
	}
	return by
}

// sortKey is by what a value is ordered: numbers before text, and both before what is missing. Text of a number is one,
// as in a filter.
type sortKey struct {
	kind   int // 0 for numbers, 1 for text
	number float64
	text   string
}

const missing = 2

var truth = map[bool]float64{true: 1}

func sortKeyOf(shown any) sortKey {
	if p, ok := shown.(plain); ok {
		if p.Number != 0 {
			return sortKey{number: p.Number}
		}
		return sortKey{kind: 1, text: p.Text}
	}
	v := codec.ValueOf(shown)
	if v.Kind() == codec.KindNull {
		return sortKey{kind: missing}
	}
	if b, ok := v.Bool(); ok {
		return sortKey{number: truth[b]}
	}
	text, _ := v.Str()
	if n, ok := codec.ParseNumber(text); ok {
		v = n
	}
	if x, ok := v.Number(); ok {
		return sortKey{number: x}
	}
	return sortKey{kind: 1, text: text}
}

// maxNames is how many entities a search for a name returns.
const maxNames = 50

// entities answers with the entities below a prefix whose key contains a text, in the order of their keys.
func (s *Console) entities(w http.ResponseWriter, r request) error {
	d, repo, err := s.dataset(r)
	if err != nil {
		return err
	}
	prefix, text, most := r.params.prefix(d), strings.ToLower(r.params.text("name", "")), r.params.integer("limit", 20, maxNames)
	if err := r.params.check(); err != nil {
		return err
	}
	type named struct {
		Entity tsdb.Entity `json:"id"`
		Parts  []string    `json:"parts"`
	}
	out := struct {
		Entities []named `json:"entities"`
		Looked   int     `json:"looked"`
		More     bool    `json:"more"` // there are entities that were not looked at
	}{Entities: []named{}}
	for e, err := range repo.Under(prefix).Entities(r.Context(), tsdb.AllTime()) {
		if err != nil {
			return err
		}
		if out.More = out.Looked == maxLooked || len(out.Entities) == most; out.More {
			break
		}
		out.Looked++
		if parts := d.parts(e); strings.Contains(strings.ToLower(strings.Join(parts, "/")), text) {
			out.Entities = append(out.Entities, named{e, parts})
		}
	}
	return encode(w, out)
}
