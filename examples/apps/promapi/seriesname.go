package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/tidemark-go/tidemark/tsdb"
)

// The labels of a series are one part of its key: {job=node,instance=a:9100} without the name of the metric, in the
// order of the names. A backslash stands before each of \ , and = in a name or a value, so that no two sets of labels
// have the same text.

// appendLabels appends the text of labels.
func appendLabels(dst []byte, ls labels.Labels) []byte {
	dst = append(dst, '{')
	first := true
	ls.Range(func(l labels.Label) {
		if l.Name == model.MetricNameLabel {
			return
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendEscaped(dst, l.Name), '=')
		dst = appendEscaped(dst, l.Value)
	})
	return append(dst, '}')
}

func appendEscaped(dst []byte, text string) []byte {
	if !strings.ContainsAny(text, `\,=`) {
		return append(dst, text...)
	}
	for i := range len(text) {
		switch c := text[i]; c {
		case '\\', ',', '=':
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

var errLabels = errors.New("not the text of labels")

// parseLabels returns the labels of a text, and the name of the metric as one of them unless it is empty.
func parseLabels(metric, text string) (labels.Labels, error) {
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return labels.EmptyLabels(), errLabels
	}
	b := labels.NewScratchBuilder(8)
	if metric != "" {
		b.Add(model.MetricNameLabel, metric)
	}
	rest := text[1 : len(text)-1]
	for rest != "" {
		name, after, end := cutEscaped(rest)
		if end != '=' {
			return labels.EmptyLabels(), errLabels
		}
		value, next, end := cutEscaped(after)
		if end == '=' || end == ',' && next == "" {
			return labels.EmptyLabels(), errLabels
		}
		b.Add(name, value)
		rest = next
	}
	b.Sort() // the name of the metric comes after labels in upper case
	return b.Labels(), nil
}

// cutEscaped returns the text before the first , or = that stands for itself, the text after it, and which of the two
// it is, or 0 at the end.
func cutEscaped(text string) (before, after string, end byte) {
	i := strings.IndexAny(text, `\,=`)
	if i < 0 {
		return text, "", 0
	}
	if text[i] != '\\' {
		return text[:i], text[i+1:], text[i]
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			if i++; i < len(text) {
				b.WriteByte(text[i])
			}
		case ',', '=':
			return b.String(), text[i+1:], c
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", 0
}

// checkSeries returns an error for labels that a series cannot have. The error names a label and never shows a value.
func checkSeries(ls labels.Labels) error {
	if ls.Get(model.MetricNameLabel) == "" {
		return errors.New("a series has no label __name__")
	}
	if name, twice := ls.HasDuplicateLabelNames(); twice {
		return fmt.Errorf("a series has the label %.100q twice", name)
	}
	return checkLabels(ls)
}

// checkLabels returns an error for labels that neither a series nor an exemplar can have.
func checkLabels(ls labels.Labels) error {
	return ls.Validate(func(l labels.Label) error {
		switch {
		case l.Name == "" || !model.UTF8Validation.IsValidLabelName(l.Name):
			return fmt.Errorf("a label has the name %.100q; want UTF-8", l.Name)
		case !model.LabelValue(l.Value).IsValid():
			return fmt.Errorf("the value of the label %.100q is not UTF-8", l.Name)
		case l.Name == model.MetricNameLabel && !model.UTF8Validation.IsValidMetricName(l.Value):
			return errors.New("the name of a metric is not UTF-8")
		}
		return nil
	})
}

// seriesEntity returns the entity of the points of a kind of a series.
func seriesEntity(kind string, ls labels.Labels) tsdb.Entity {
	var text [256]byte
	return tsdb.NewEntity(kind, ls.Get(model.MetricNameLabel), string(appendLabels(text[:0], ls)))
}
