package lab

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"
)

// elementKind is what an element of a row key holds.
type elementKind uint8

const (
	tenantElement elementKind = iota
	datasetElement
	fieldElement
	timeElement
	reverseElement // newest first
	saltElement
)

// element is an element of a row key. n is the index of a field, or a number of salts.
type element struct {
	kind elementKind
	n    int
}

// layout is the row key of a candidate for one dataset.
type layout struct {
	elements []element
	native   bool // the key is the SDK's
	salts    int  // 0 for none
}

const (
	mostSalts = 100
	elements  = "tenant, dataset, entity, the names of key fields, time, ~time and salt(2) to salt(100), with # between them"
)

// parseLayout returns the layout of a key for a dataset, or what is wrong with it.
func parseLayout(text string, d *dataset, datasets int) (l layout, err error) {
	seen := map[element]bool{}
	add := func(e element) error {
		if e.kind == saltElement {
			l.salts = e.n
			e.n = 0
		}
		if seen[e] {
			return fmt.Errorf("an element is there twice; want each once")
		}
		seen[e] = true
		if e.kind == saltElement {
			e.n = l.salts
		}
		l.elements = append(l.elements, e)
		return nil
	}
	for name := range strings.SplitSeq(text, "#") {
		name = strings.TrimSpace(name)
		at := slices.IndexFunc(d.fields, func(f field) bool { return f.name == name })
		var list []element
		switch {
		case at >= 0:
			list = []element{{fieldElement, at}}
		case name == "entity":
			for i := range d.fields {
				list = append(list, element{fieldElement, i})
			}
		case name == "tenant":
			list = []element{{kind: tenantElement}}
		case name == "dataset":
			list = []element{{kind: datasetElement}}
		case name == "time":
			list = []element{{kind: timeElement}}
		case name == "~time":
			list = []element{{kind: reverseElement}}
		case strings.HasPrefix(name, "salt(") && strings.HasSuffix(name, ")"):
			n, err := strconv.Atoi(name[len("salt(") : len(name)-1])
			if err != nil || n < 2 || n > mostSalts {
				return l, fmt.Errorf("%q is no number of salts; want salt(2) to salt(%d)", name, mostSalts)
			}
			list = []element{{saltElement, n}}
		default:
			return l, fmt.Errorf("%q is no element of a key of dataset %s; want %s (here %s)", name, d.name, elements, d.fieldNames())
		}
		for _, e := range list {
			if err := add(e); err != nil {
				return l, err
			}
		}
	}
	switch {
	case !seen[element{kind: timeElement}] && !seen[element{kind: reverseElement}]:
		return l, fmt.Errorf("there is no time in the key; want time or ~time, because each point is a row")
	case seen[element{kind: timeElement}] && seen[element{kind: reverseElement}]:
		return l, fmt.Errorf("there are time and ~time; want one of them")
	}
	for i, f := range d.fields {
		if !seen[element{fieldElement, i}] {
			return l, fmt.Errorf("key field %s of dataset %s is missing; write %s or entity", f.name, d.name, f.name)
		}
	}
	l.native = l.isNative(len(d.fields))
	if !l.native && datasets > 1 && !seen[element{kind: datasetElement}] {
		return l, fmt.Errorf("there are %d datasets in the table; add the element dataset", datasets)
	}
	return l, nil
}

// isNative reports whether the key is tenant#salt(n)#entity#~time, with or without the dataset and the salt, as the SDK
// has it.
func (l layout) isNative(fields int) bool {
	rest := slices.DeleteFunc(slices.Clone(l.elements), func(e element) bool { return e.kind == datasetElement || e.kind == saltElement })
	if len(rest) != fields+2 || rest[0].kind != tenantElement || rest[fields+1].kind != reverseElement {
		return false
	}
	for i := range fields {
		if rest[1+i] != (element{fieldElement, i}) {
			return false
		}
	}
	for i, e := range l.elements { // where the SDK has them
		if e.kind == datasetElement && i != 1 || e.kind == saltElement && (i == 0 || i > 2 || l.elements[i-1].kind == fieldElement) {
			return false
		}
	}
	return true
}

func (d *dataset) fieldNames() string {
	var names []string
	for _, f := range d.fields {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// isTime reports whether an element holds the time.
func (e element) isTime() bool { return e.kind == timeElement || e.kind == reverseElement }

// salt returns the salt of an entity.
func (l layout) salt(entity int) int {
	h := fnv.New64a()
	_, _ = h.Write(strconv.AppendInt(nil, int64(entity), 10))
	return int(h.Sum64() % uint64(l.salts))
}

// latestTime is later than all times of a load, in milliseconds.
const latestTime = 9_999_999_999_999

// timeText is a time as a raw key has it: milliseconds since 1970, or what remains of them up to the latest time.
func timeText(e element, at time.Time) string {
	ms := at.UnixMilli()
	if e.kind == reverseElement {
		ms = latestTime - ms
	}
	return fmt.Sprintf("%013d", ms)
}
