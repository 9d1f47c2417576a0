package adopt

import (
	"strings"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// part is one part of a foreign row key.
type part struct {
	role  role
	name  string
	text  string // of a constant
	width int    // in bytes; 0 for a part that goes up to the separator
	kind  rowkey.FieldKind
}

// padded reports whether the table writes numbers of this part with zeros on the left.
func (p *part) padded() bool {
	return p.width > 0 && (p.kind == rowkey.ReversedID || strings.HasPrefix(p.kind.String(), "uint"))
}

type role uint8

const (
	fieldPart role = iota
	tenantPart
	timePart
	idPart
	constantPart
	ignoredPart
)

// place is what a foreign row key says of its points.
type place struct {
	tenant tenant.ID
	path   string // of the entity
	units  int64  // the time in units of the dataset's precision, if the key has it
	id     string
}

// split returns what a row key says.
func (m *Mapping) split(key string, p rowkey.Precision) (place, *Unfit) {
	at := place{tenant: m.tenant}
	rest, path := key, make([]byte, 0, len(key)+8)
	for i := range m.parts {
		part := &m.parts[i]
		text, last := rest, i == len(m.parts)-1
		switch {
		case last && part.width > 0 && part.width != len(rest) && part.role != timePart, part.width > len(rest) && !last:
			return at, unfit(reasonKeys, key, "it has %d bytes from %s on", len(rest), part.title())
		case last:
		case part.width > 0:
			text = rest[:part.width]
		default:
			n := strings.Index(rest, m.sep)
			if n < 0 {
				return at, unfit(reasonKeys, key, "it has no %q after %s", m.sep, part.title())
			}
			text = rest[:n]
		}
		rest = rest[len(text):]
		if !last {
			var ok bool
			if rest, ok = strings.CutPrefix(rest, m.sep); !ok {
				return at, unfit(reasonKeys, key, "it has no %q after %s", m.sep, part.title())
			}
		}
		var wrong *Unfit
		if path, wrong = m.take(part, text, key, p, &at, path); wrong != nil {
			return at, wrong
		}
	}
	at.path = string(path)
	return at, nil
}

// take reads one part of a key.
func (m *Mapping) take(part *part, text, key string, p rowkey.Precision, at *place, path []byte) ([]byte, *Unfit) {
	switch part.role {
	case constantPart:
		if text != part.text {
			return path, unfit(reasonKeys, key, "it has %q where the mapping has =%s", short(text), part.text)
		}
	case tenantPart:
		id, err := tenant.Parse(text)
		if err != nil {
			return path, unfit(reasonTenants, key, "tenant %q; want 1 to 64 of A-Z a-z 0-9 . _ -", short(text))
		}
		at.tenant = id
	case timePart:
		units, problem := m.time.parse(text, p)
		if problem != "" {
			return path, unfit(reasonTimes, key, "time %q: %s", short(text), problem)
		}
		at.units = units
	case idPart:
		at.id = text
	case fieldPart:
		if text == "" || !utf8.ValidString(text) {
			return path, unfit(reasonEntities, key, "%s is %q; want at least one byte, and UTF-8", part.name, short(text))
		}
		if m.sep != "" && part.width == 0 && strings.Contains(text, m.sep) { // the last part
			return path, unfit(reasonKeys, key, "it has more parts than the mapping")
		}
		stored, problem := part.store(text)
		if problem != "" {
			return path, unfit(reasonEntities, key, "%s is %q; %s", part.name, short(text), problem)
		}
		if len(path) > 0 {
			path = append(path, '#')
		}
		path = rowkey.AppendPath(path, stored)
	}
	return path, nil
}

// store returns a key field as the dataset stores it. Each stored text comes from one foreign text, which foreign
// returns.
func (p *part) store(text string) (stored, problem string) {
	if p.kind == (rowkey.FieldKind{}) {
		return text, ""
	}
	usual := text
	if p.padded() {
		if usual = strings.TrimLeft(text, "0"); usual == "" {
			usual = "0"
		}
	}
	stored, err := p.kind.Part(p.name, usual)
	if err != nil {
		return "", "want a value of the kind " + p.kind.String()
	}
	if back, ok := p.foreign(stored); !ok || back != text {
		return "", "want the usual spelling of the kind " + p.kind.String()
	}
	return stored, ""
}

// foreign returns the text of a stored key field in the foreign table.
func (p *part) foreign(stored string) (text string, ok bool) {
	if p.kind != (rowkey.FieldKind{}) {
		if err := p.kind.Scan(p.name, stored, &text); err != nil {
			return "", false
		}
		if n := p.width - len(text); n > 0 && p.padded() {
			text = strings.Repeat("0", n) + text
		}
	} else {
		text = stored
	}
	return text, p.width == 0 || len(text) == p.width
}

// title names a part for messages.
func (p *part) title() string {
	if p.role == constantPart {
		return "=" + p.text
	}
	return p.name
}

// prefix returns the start of the keys of a tenant, with the separator after it. ok is false if no key of the table can
// be of it.
func (m *Mapping) prefix(id tenant.ID) (prefix string, ok bool) {
	var b strings.Builder
	for i := range m.parts {
		p := &m.parts[i]
		var text string
		switch p.role {
		case constantPart:
			text = p.text
		case tenantPart:
			if text = id.String(); p.width > 0 && len(text) != p.width {
				return "", false
			}
		default:
			return b.String(), true
		}
		b.WriteString(text)
		if i < len(m.parts)-1 {
			b.WriteString(m.sep)
		}
	}
	return b.String(), true
}

// successor returns the first key after all keys with a prefix, or "" if there is none.
func successor(prefix string) string {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return string(b[:i+1])
		}
	}
	return ""
}
