package dynamic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// maxNames is in how many objects within each other fields are listed.
const maxNames = 16

var errMore = errors.New("bytes after the value")

func decodeJSON(src []byte) (codec.Record, error) {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return codec.Record{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return codec.Record{}, errMore
	}
	return fieldsOf(v)
}

// fieldsOf returns the fields of a plain value.
func fieldsOf(v any) (codec.Record, error) {
	if r, ok := v.(codec.Record); ok {
		return r, nil
	}
	var l lister
	err := l.plain(v)
	return codec.NewRecord(l.fields...), err
}

// lister lists the fields of a payload. Of fields with one joined name, the last one that it adds counts.
type lister struct {
	fields []codec.Field
	names  []string // of the objects that it is in
}

// enter begins a field of an object or a message. It returns false if it is too deep to be listed.
func (l *lister) enter(name string) bool {
	if len(l.names) == maxNames {
		return false
	}
	l.names = append(l.names, name)
	return true
}

func (l *lister) leave() { l.names = l.names[:len(l.names)-1] }

// add adds the value of the field that the lister is in.
func (l *lister) add(v codec.Value) {
	l.fields = append(l.fields, codec.Field{Name: strings.Join(l.names, "."), Value: v})
}

// plain adds the fields of a plain value.
func (l *lister) plain(v any) error {
	object, ok := v.(map[string]any)
	if !ok {
		value := codec.ValueOf(v)
		if value.Kind() != codec.KindInvalid {
			l.add(value)
		} else if text, isNumber := v.(json.Number); isNumber {
			return fmt.Errorf("the number %s of field %s is too large for a float64", invalid.Quote(text.String()), invalid.Quote(strings.Join(l.names, ".")))
		}
		return nil
	}
	for _, name := range byLength(object) {
		if !l.enter(name) {
			break
		}
		if err := l.plain(object[name]); err != nil {
			return err
		}
		l.leave()
	}
	return nil
}

// byLength returns the names of an object, the longest last, since the longest counts.
func byLength[V any](object map[string]V) []string {
	return slices.SortedFunc(maps.Keys(object), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
}
