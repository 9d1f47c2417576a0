package tsdb

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/nest"
)

// Rollup is a *rollup.Rollup[T], for SchemaOptions.Rollups of a Schema[T]: one of another T can be neither computed nor
// read. Other types cannot implement it.
type Rollup interface {
	// Name returns the rollup's name.
	Name() string

	rollupFace
}

// definitionsOf returns the definitions of a schema's rollups.
func definitionsOf(rollups []Rollup) ([]*nest.Definition, error) {
	var out []*nest.Definition
	for i, r := range rollups {
		of := inside.Held(r)
		if of == nil || !of.Is(r) {
			what := "nil"
			switch {
			case of != nil:
				what = "of another type"
			case r != nil:
				what = "zero"
			}
			return nil, invalid.New(ErrInvalid, "rollup "+strconv.Itoa(i), what, "a rollup from rollup.Define")
		}
		out = append(out, of)
	}
	return out, nil
}

// checkSources refuses derived rollups that cannot be computed from their source.
func checkSources(d *dataset.Dataset, listed []*nest.Definition) error {
	for i := range d.Rollups {
		if d.Rollups[i].Kind != catalog.Derived {
			continue
		}
		classes := d.Classes
		var from *nest.Definition // nil for the points
		for j := range i {
			if u := &d.Rollups[j]; u.Name == d.Rollups[i].From {
				from, classes = listed[j], d.KeptRollups(u)
			}
		}
		kept := make([]gc.Policy, len(classes))
		for i, c := range classes {
			kept[i] = c.Policy
		}
		if err := listed[i].Follows(from, kept); err != nil {
			return fmt.Errorf("rollup %s: %w", invalid.Quote(d.Rollups[i].Name), err)
		}
	}
	return nil
}

// fieldNumbers reads fields of payloads as numbers: by the name of the field, then by tag.
type fieldNumbers = map[string][]func(payload []byte) (codec.Value, error)

// numbersOf returns how the fields are read that measures of the dataset's rollups are declared by. If the fields of
// some payloads cannot be read, their functions are nil, and the error says so.
func numbersOf[T any](readers []codec.Reader[T], d *dataset.Dataset) (numbers fieldNumbers, err error) {
	for _, r := range d.Rollups {
		for _, m := range r.Measures {
			_, field := m.KindAndField()
			if field == "" || numbers[field] != nil {
				continue
			}
			if numbers == nil {
				numbers = fieldNumbers{}
			}
			var unread []string
			of := make([]func([]byte) (codec.Value, error), len(readers))
			for i, reader := range readers {
				if reader.Number == nil {
					unread = append(unread, invalid.Quote(reader.Tag))
					continue
				}
				of[i] = reader.Number(catalog.PayloadName(field))
			}
			numbers[field] = of
			if unread != nil {
				err = cmp.Or(err, error(invalid.New(ErrInvalid, "Field of measure "+m.Name+" of rollup "+r.Name, invalid.Quote(field), "a codec of which fields can be read "+
					"(dynamic.Fields for protobuf), or a function: those of payloads with the tag "+strings.Join(unread, ", ")+" cannot be read")))
			}
		}
	}
	return numbers, err
}
