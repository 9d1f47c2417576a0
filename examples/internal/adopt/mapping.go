package adopt

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// The limits of a mapping file.
const (
	maxFile   = 1 << 20
	maxParts  = 16
	maxFields = 1000
)

// Mapping says how the rows of a foreign table are points of a dataset. [Parse] makes one. It never changes, so
// goroutines may share it. The zero Mapping describes nothing, and every call refuses it.
type Mapping struct {
	project, instance, table, profile string
	id                                string // identifies the text of the file

	dataset   catalog.Dataset // created if the store does not have it
	class     string          // empty for the dataset's first class
	precision rowkey.Precision
	kinds     []rowkey.FieldKind

	tenant tenant.ID // zero if the row key has it
	sep    string
	parts  []part
	time   timeFormat
	inKey  bool // the row key has the time; else each cell's timestamp is it
	ids    bool
	cells  cellTime

	columns []column
	single  bool // one column is the payload; else columns are fields of a record
	tag     string
	skip    []string
}

// cellTime says what the timestamps of cells mean.
type cellTime uint8

const (
	cellUnknown cellTime = iota
	cellWritten          // when the cell was written
	cellPoint            // the time of the point
)

// Source returns where the foreign table is, as the file says: each may be empty except the table.
func (m *Mapping) Source() (project, instance, table, appProfile string) {
	if m == nil {
		return "", "", "", ""
	}
	return m.project, m.instance, m.table, m.profile
}

// Dataset returns the name of the dataset to copy to, and Key the names of its key fields.
func (m *Mapping) Dataset() string {
	if m == nil {
		return ""
	}
	return m.dataset.Name
}

// Key returns the names of the key fields of the dataset.
func (m *Mapping) Key() []string {
	if m == nil {
		return nil
	}
	return slices.Clone(m.dataset.Key)
}

// Parse reads a mapping file, of up to 1 MiB. The error matches ErrInvalid and has a line for each mistake, with its
// line in the file and with what is allowed. It does no I/O.
func Parse(text []byte) (*Mapping, error) {
	var f file
	r := new(mistakes)
	if len(text) > maxFile {
		r.add(0, "the file has %d bytes; want at most %d", len(text), maxFile)
		return nil, r.err()
	}
	if !f.decode(text, r) {
		return nil, r.err()
	}
	sum := sha256.Sum256(text)
	m := &Mapping{id: hex.EncodeToString(sum[:8]), project: f.Project.value, instance: f.Instance.value, profile: f.AppProfile.value}
	m.table = f.Table.value
	r.require("table", f.Table, "the name of the foreign table")
	m.readTenant(&f, r)
	m.readKey(&f, r)
	m.readTime(&f, r)
	m.readColumns(&f, r)
	m.readDataset(&f, r)
	m.readSkip(&f, r)
	if err := r.err(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Mapping) readTenant(f *file, r *mistakes) {
	if f.Tenant.line == 0 {
		return
	}
	id, err := tenant.Parse(f.Tenant.value)
	if err != nil {
		r.add(f.Tenant.line, "tenant is %q; want 1 to 64 of A-Z a-z 0-9 . _ -", f.Tenant.value)
	}
	m.tenant = id
}

// partText is an element of key.parts: -name, or name, with a width and a kind.
var partText = regexp.MustCompile(`^(-?)([A-Za-z_][A-Za-z0-9_.-]*)(?:\(([0-9]{1,4})\))?(?::([a-z0-9_]+))?$`)

func (m *Mapping) readKey(f *file, r *mistakes) {
	m.sep = f.Key.Separator.value
	if len(f.Key.Parts) == 0 {
		r.add(f.Key.Separator.line, "key.parts is missing; want a list such as [site, device, time]")
		return
	}
	if len(f.Key.Parts) > maxParts {
		r.add(f.Key.Parts[0].line, "key.parts has %d items; want at most %d", len(f.Key.Parts), maxParts)
		return
	}
	for i, t := range f.Key.Parts {
		p, ok := m.readPart(t, r)
		if !ok {
			continue
		}
		if m.sep == "" && i < len(f.Key.Parts)-1 && p.width == 0 && p.role != timePart {
			r.add(t.line, "key.parts has %q without a width; want one, such as %s(8), because key.separator is empty", t.value, t.value)
		}
		if slices.ContainsFunc(m.parts, func(o part) bool { return p.role != constantPart && o.role == p.role && o.name == p.name }) {
			r.add(t.line, "key.parts has %q twice", t.value)
		}
		m.parts = append(m.parts, p)
	}
	first := f.Key.Parts[0].line
	switch has := slices.ContainsFunc(m.parts, func(p part) bool { return p.role == tenantPart }); {
	case has && f.Tenant.line > 0:
		r.add(f.Tenant.line, "tenant is %q, and key.parts has a tenant, too; want one of the two", f.Tenant.value)
	case !has && f.Tenant.line == 0:
		r.add(first, "no tenant: want tenant: NAME for the whole table, or tenant as one of key.parts")
	case has && slices.IndexFunc(m.parts, func(p part) bool { return p.role == tenantPart }) > slices.IndexFunc(m.parts, func(p part) bool { return p.role != constantPart }):
		r.add(first, "tenant is not the first of key.parts; want only constants before it, so that the tenants can be listed")
	}
	if len(m.dataset.Key) == 0 {
		r.add(first, "key.parts names no key field; want at least one, such as device")
	} else if err := rowkey.CheckFields(m.dataset.Key, 0); err != nil {
		r.add(first, "key.parts: %v", err)
	} else if err := rowkey.CheckKinds(m.dataset.Key, m.kinds); err != nil {
		r.add(first, "key.parts: %v", err)
	}
}

func (m *Mapping) readPart(t text, r *mistakes) (p part, ok bool) {
	if constant, is := strings.CutPrefix(t.value, "="); is && constant != "" {
		return part{role: constantPart, text: constant, width: len(constant)}, true
	}
	found := partText.FindStringSubmatch(t.value)
	if found == nil {
		r.add(t.line, "key.parts has %q; want a name, name(width), name:kind, =constant, or -name for a part to ignore", t.value)
		return p, false
	}
	p.name = found[2]
	if found[3] != "" {
		p.width, _ = strconv.Atoi(found[3])
		if p.width < 1 || p.width > rowkey.MaxKey {
			r.add(t.line, "key.parts has %q; want a width of 1 to %d bytes", t.value, rowkey.MaxKey)
		}
	}
	switch {
	case found[1] == "-":
		p.role = ignoredPart
	case p.name == "tenant":
		p.role = tenantPart
	case p.name == "time":
		p.role = timePart
		m.inKey = true
		if p.width > 0 {
			r.add(t.line, "key.parts has %q; want the width under time, as width: %d", t.value, p.width)
		}
	case p.name == "id":
		p.role = idPart
		m.ids = true
	default:
		p.role = fieldPart
		if found[4] != "" {
			kind, err := rowkey.ParseFieldKind(found[4])
			if err != nil {
				r.add(t.line, "key.parts has %q; want text, uint5, int5, reversed_id, reversed_domain or uuid after the colon", t.value)
			}
			p.kind = kind
		}
		m.dataset.Key, m.kinds = append(m.dataset.Key, p.name), append(m.kinds, p.kind)
		return p, true
	}
	if found[4] != "" {
		r.add(t.line, "key.parts has %q; want a kind only for key fields", t.value)
	}
	return p, true
}

func (m *Mapping) readDataset(f *file, r *mistakes) {
	d := &m.dataset
	r.require("dataset.name", f.Dataset.Name, "the dataset to copy to")
	if d.Name = f.Dataset.Name.value; f.Dataset.Name.line > 0 && rowkey.CheckDataset(d.Name) != nil {
		r.add(f.Dataset.Name.line, "dataset.name is %q; want 1 to 32 of A-Z a-z 0-9 . _ -", d.Name)
	}
	m.precision = m.time.precision()
	if t := f.Dataset.Precision; t.line > 0 {
		p, identity, err := rowkey.ParseTimeName(t.value)
		if err != nil || identity {
			r.add(t.line, "dataset.precision is %q; want ns, us or ms", t.value)
		}
		m.precision = p
	}
	d.Precision = m.precision.TimeName(m.ids)
	d.Tags = []string{m.tag}
	for _, k := range m.kinds {
		d.Kinds = append(d.Kinds, k.String())
	}
	if !slices.ContainsFunc(m.kinds, func(k rowkey.FieldKind) bool { return k != (rowkey.FieldKind{}) }) {
		d.Kinds = nil // the catalogue's way to say that all are text
	}
	name, policy, given := strings.Cut(f.Dataset.Retention.value, "=")
	class := gc.Class{Name: name}
	if f.Dataset.Retention.line == 0 {
		class = gc.Class{Name: "keep"}
	} else {
		m.class = name
	}
	var err error
	if given {
		class.Policy, err = gc.Parse(policy)
	}
	if err == nil {
		err = class.Validate()
	}
	if err == nil {
		_, _, err = class.Policy.PointAge()
	}
	if err != nil {
		r.add(f.Dataset.Retention.line, "dataset.retention is %q; want a class and its policy, such as d90=maxage=90d: %v", f.Dataset.Retention.value, err)
	}
	d.Classes = []catalog.Class{{Name: class.Name, Policy: class.Policy.String()}}
}

func (m *Mapping) readSkip(f *file, r *mistakes) {
	for _, t := range f.Skip {
		if !slices.Contains(reasons, t.value) {
			r.add(t.line, "skip has %q; want some of %s", t.value, strings.Join(reasons, ", "))
		}
		m.skip = append(m.skip, t.value)
	}
}

// skips reports whether the mapping allows leaving out what is unfit for a reason.
func (m *Mapping) skips(reason string) bool { return slices.Contains(m.skip, reason) }
