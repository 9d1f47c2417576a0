package web

import (
	"context"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	// maxFleet is how many entities a list has at most. A live stream has as many.
	maxFleet = 10_000
	// maxLooked is how many entities are looked at for a filter or an order.
	maxLooked = 50_000
)

// list is the newest point of the entities below a prefix that a filter chooses, and the newest value of each field
// that the point lacks.
type list struct {
	Rows   []row    `json:"rows"`
	Fields []string `json:"fields"` // what the values of a row are: the fields of the request, then those of its filter and order
	Filter *clause  `json:"filter,omitempty"`
	Now    float64  `json:"now"` // the server's clock
	// Looked is how many entities were looked at, and Matched how many of them the filter chooses. More says that there
	// are more entities, behind Last.
	Looked  int         `json:"looked"`
	Matched int         `json:"matched"`
	More    bool        `json:"more"`
	Last    tsdb.Entity `json:"last"`
	// Cut is how many entities have older points that were not looked at, and may have values there.
	Cut int `json:"cut"`
	// Never are the fields of the filter that no entity has.
	Never []string `json:"never,omitempty"`

	d       *dataset
	repo    *tsdb.Repository[codec.Record]
	prefix  tsdb.Prefix
	names   []string
	order   order
	most    int // rows
	batch   []row
	lacking map[tsdb.Entity]int // the rows of the batch that lack a field
	has     map[string]bool     // the fields that an entity has
	until   time.Time           // when it stops looking at more entities
}

// latest answers with the newest point of each entity below a prefix that a filter chooses.
func (s *Console) latest(w http.ResponseWriter, r request) error {
	d, repo, err := s.dataset(r)
	if err != nil {
		return err
	}
	l := &list{d: d, repo: repo, Rows: []row{}, lacking: map[tsdb.Entity]int{}, has: map[string]bool{}}
	if err := l.read(r.params); err != nil {
		return err
	}
	now := time.Now()
	l.Now, l.until = millis(now), now.Add(s.Timeout/2) // the other half is for older values, and to write the answer
	if err := l.look(r.Context()); err != nil {
		return err
	}
	return encode(w, l)
}

// read reads the parameters of a list.
func (l *list) read(p *params) (err error) {
	l.prefix, l.names = p.prefix(l.d), p.fields(maxListFields)
	l.most = p.integer("limit", maxFleet, maxFleet)
	after, ok := length(p.text("silent", "5m"))
	if !ok {
		p.refuse("silent", "no length of time", "one such as 5m")
	}
	where := p.text("where", "")
	by := p.text("sort", "name")
	if err := p.check(); err != nil {
		return err
	}
	var keys []string
	for _, field := range l.d.described.Key {
		keys = append(keys, field.Name)
	}
	if l.Filter, err = parseFilter(where, keys, after); err != nil {
		return err
	}
	if l.Filter != nil {
		l.names = l.Filter.fields(l.names)
	}
	if l.names, l.order, err = orderOf(by, l.names); err != nil {
		return err
	}
	if len(l.names) > maxListFields {
		return refused("the number of fields", "more", "at most 12, with those of the filter")
	}
	for _, name := range l.names {
		l.Fields = append(l.Fields, shownField(name))
	}
	return nil
}

// look reads the entities in batches, so that those that the filter does not choose take no memory.
func (l *list) look(ctx context.Context) error {
	most := l.most
	if l.Filter != nil || l.order != (order{}) {
		most = maxLooked
	}
	for p, err := range l.repo.Under(l.prefix).Latest(ctx) {
		if err != nil && !bad(err) {
			return err
		}
		if l.More = l.Looked == most || l.Looked%256 == 255 && time.Now().After(l.until); l.More {
			break
		}
		if len(l.batch) == maxFleet {
			if err := l.flush(ctx); err != nil {
				return err
			}
		}
		if l.d.lacks(p.Value, l.names) {
			l.lacking[p.Entity] = len(l.batch)
		}
		l.batch = append(l.batch, l.d.row(p, l.names, maxListed, err))
		l.Looked, l.Last = l.Looked+1, p.Entity
	}
	if err := l.flush(ctx); err != nil {
		return err
	}
	for _, name := range l.Filter.fields(nil) {
		if !l.has[name] {
			l.Never = append(l.Never, shownField(name))
		}
	}
	return nil
}

// flush chooses the rows of a batch, and keeps as many as the list may have.
func (l *list) flush(ctx context.Context) error {
	if len(l.lacking) > 0 {
		if err := l.d.newestValues(ctx, l.repo, l.prefix, l.Looked == len(l.batch), l.names, l.batch, l.lacking); err != nil {
			return err
		}
	}
	for _, r := range l.batch {
		if r.cut {
			l.Cut++
		}
		for _, name := range l.names {
			if v, ok := r.value.Lookup(name); ok && v.Kind() != codec.KindNull {
				l.has[name] = true
			}
		}
		older := func(field string) bool {
			i := slices.Index(l.names, field)
			return i >= 0 && r.Times != nil && !math.IsNaN(r.Times[i])
		}
		if l.Filter.matches(&candidate{r.Parts, r.value, l.Now - r.Time, older}) {
			l.Rows = append(l.Rows, r)
			l.Matched++
		}
	}
	slices.SortStableFunc(l.Rows, l.order.compare)
	l.Rows = l.Rows[:min(len(l.Rows), l.most)]
	for i := range l.Rows {
		l.Rows[i].value = codec.Record{}
	}
	l.batch = l.batch[:0]
	clear(l.lacking)
	return nil
}
