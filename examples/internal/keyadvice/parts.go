package keyadvice

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb/keys"
)

// unpadded finds numbers whose text does not sort by number.
func (a *analysis) unpadded(f *field) {
	n, same, ok := numbers(f.values)
	if !ok || same || n.prefix != "" || f.form == clock {
		return
	}
	short, long := f.values[0], f.values[0]
	for _, v := range f.values {
		if v[0] == '0' && v != "0" { // padded numbers, some of them longer, or reversed digits
			return
		}
		if len(v) < len(short) {
			short = v
		}
		if len(v) > len(long) {
			long = v
		}
	}
	if len(long) > longestPadded {
		return
	}
	a.add(Advice{
		Cause: causeUnpaddedNumber, Severity: info, Field: f.name,
		Found: fmt.Sprintf("Key field %s holds numbers of %d to %d digits, such as %s and %s.", f.name, len(short), len(long), shown(short), shown(long)),
		Why:   "Keys are sorted by their bytes, so 10 comes before 9. Under(prefix).Entities and Latest return results in that order.",
		Remedy: fmt.Sprintf("If their order matters, declare the field as a number, with the most digits that it will ever have: tsdb.Key().Uint(%q, %d).",
			f.name, len(long)+2),
	})
}

// hashed finds random values before a field by which entities could be read.
func (a *analysis) hashed(f *field) {
	if f.form != random || f.index == len(a.Fields)-1 {
		return
	}
	prefixes := map[string]bool{}
	for i := range a.Entities {
		prefixes[a.Entities[i].group(f.index+1)] = true
	}
	if float64(len(prefixes)) < inOrder*float64(len(a.Entities)) {
		return // each value has several entities
	}
	for i := f.index + 1; i < len(a.Fields); i++ {
		distinct := map[string]bool{}
		for j := range a.Entities {
			distinct[a.Entities[j].Parts[i]] = true
		}
		if len(distinct) < 2 || len(distinct) > len(a.Entities)/4 {
			continue
		}
		a.add(Advice{
			Cause: causeHashedPart, Severity: warning, Field: f.name,
			Found: fmt.Sprintf("Key field %s holds %s, %d for %d entities, before %s, which has %d values.", f.name, f.what, len(f.values), len(a.Entities), a.Fields[i], len(distinct)),
			Why: fmt.Sprintf("Each entity has its own value, so no prefix selects related entities: Under(prefix).Latest cannot read one %s, and all entities must be read instead.",
				a.Fields[i]),
			Remedy: fmt.Sprintf("Put %s before %s. To spread load, give the schema Salts: prefixes stay readable.", a.Fields[i], f.name),
		})
		return
	}
}

// personal finds parts that look like personal data.
func (a *analysis) personal(f *field) {
	found := map[string]int{}
	n, digits := 0, 0
	for _, v := range f.values {
		if isDigits(v) {
			digits++
		}
		if like := personalLike(v); like != "" {
			found[like]++
			n++
		}
	}
	if card := found[cardLike]; card > 0 && digits > len(f.values)/2 && card < len(f.values)/2 {
		// Serial numbers of 16 digits: some look like card numbers by chance.
		n -= card
		delete(found, cardLike)
	}
	if n == 0 {
		a.mayBelong(f)
		return
	}
	var kinds []string
	for _, like := range []string{mailLike, cardLike} {
		if found[like] > 0 {
			kinds = append(kinds, fmt.Sprintf("%d of %d %s", found[like], len(f.values), like))
		}
	}
	a.add(Advice{
		Cause: causePersonalData, Severity: critical, Field: f.name,
		Found:  fmt.Sprintf("Values of key field %s look personal: %s. They are not shown here.", f.name, strings.Join(kinds, ", ")),
		Why:    "Row keys are service data: they appear in logs, errors and Key Visualizer, and outlive what they name.",
		Remedy: "Store an opaque id, or a keyed hash from keys.Hasher, and set CheckKeys: keys.CheckPersonal, so that the schema rejects personal data.",
	})
}

// Kinds of personal data, in the words of keys.CheckPersonal.
const (
	mailLike = "like a mail address"
	cardLike = "like a payment card number"
)

func personalLike(v string) string {
	bad, ok := errors.AsType[*invalid.Error](keys.CheckPersonal("", v))
	if !ok {
		return ""
	}
	like, _, _ := strings.Cut(bad.Value, " (")
	return like
}

// personalTenants finds tenants whose names look like personal data.
func (a *analysis) personalTenants() {
	n, last := 0, ""
	for i := range a.Entities {
		if id := a.Entities[i].Tenant; id != last {
			last = id
			if personalLike(id) != "" {
				n++
			}
		}
	}
	if n == 0 {
		return
	}
	a.add(Advice{
		Cause: causePersonalData, Severity: critical,
		Found:  fmt.Sprintf("The names of %s look like personal data. They are not shown here.", counted(n, "tenant", "tenants")),
		Why:    "A tenant's name is the start of all its row keys, which appear in logs, errors and Key Visualizer.",
		Remedy: "Use opaque ids as tenant names, and store real names in the profiles.",
	})
}
