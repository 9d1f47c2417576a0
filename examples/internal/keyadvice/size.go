package keyadvice

import (
	"fmt"
	"strings"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// keys finds long row keys.
func (a *analysis) keys() {
	if len(a.Entities) == 0 {
		return
	}
	longest, over := a.most(func(e *entity) float64 { return float64(e.Key) }), 0
	lengths := make([]float64, len(a.Entities))
	for i := range a.Entities {
		lengths[i] = float64(a.Entities[i].Key)
		if a.Entities[i].Key > maxKey {
			over++
		}
	}
	f := Advice{
		Cause: causeLongKey, Severity: info,
		Found:  fmt.Sprintf("Row keys are up to %d bytes long, with a median of %.0f; the longest belongs to an entity of tenant %s.", longest.Key, median(lengths), longest.Tenant),
		Why:    fmt.Sprintf("Bigtable accepts keys of up to %d bytes. Each row in a request and in a response contains its whole key; 10 to 100 bytes are ideal.", maxKey),
		Remedy: "Use short names in the parts. A part is for what reads ask for; store descriptions of an entity elsewhere.",
	}
	switch {
	case over > 0:
		f.Severity = critical
		f.Found += fmt.Sprintf(" %s over the limit: their points are rejected.", counted(over, "entity is", "entities are"))
	case longest.Key >= nearMaxKey:
		f.Severity = warning
	case median(lengths) < longKey:
		return
	}
	a.add(f)
}

// names finds names that are longer than the payload.
func (a *analysis) names() {
	if len(a.Entities) == 0 {
		return
	}
	sizes := make([]float64, len(a.Entities))
	payloads := make([]float64, 0, len(a.Entities))
	for i := range a.Entities {
		sizes[i] = float64(len(a.Entities[i].Tenant))
		if p := a.Entities[i].Payload; p > 0 {
			payloads = append(payloads, float64(p))
		}
	}
	tenant := median(sizes)
	all := tenant + float64(len(a.Dataset)+len(a.Family)+len(a.Qualifier))
	payload := median(payloads)
	if all < manyNames && (payload == 0 || all < longNames) || payload >= all {
		return
	}
	found := fmt.Sprintf("Names take about %.0f bytes of each row: %.0f the tenant's, %d the dataset's, %d the retention class's, %d the column's.",
		all, tenant, len(a.Dataset), len(a.Family), len(a.Qualifier))
	if payload > 0 {
		found += fmt.Sprintf(" A typical payload takes %s.", bytes(payload))
	}
	a.add(Advice{
		Cause: causeLongNames, Severity: info, Found: found,
		Why:    "Each row that is written or read contains the names. Compression removes most of this on disk, but not on the network.",
		Remedy: "Choose short names before points are stored: two or three letters for a dataset and a retention class, a short id for a tenant. Or put more data into a point.",
	})
}

// payloads finds payloads near the dataset's limit.
func (a *analysis) payloads() {
	near, over := 0, 0
	for i := range a.Entities {
		e := &a.Entities[i]
		switch {
		case e.Payload > a.MaxPayload:
			over++
		case float64(e.Payload) >= nearPayload*float64(a.MaxPayload):
			near++
		}
	}
	if near+over == 0 {
		return
	}
	largest := a.most(func(e *entity) float64 { return float64(e.Payload) })
	f := Advice{
		Cause: causeLargePayload, Severity: warning,
		Found: fmt.Sprintf("Payloads are up to %s large, those of entity %s of tenant %s; the limit of this dataset is %s.", bytes(largest.Payload),
			shown(rowkey.Text(rowkey.Path(largest.Parts...))), largest.Tenant, bytes(a.MaxPayload)),
		Why:    "Bigtable recommends cells of at most 10 MiB, all points of a head share that limit, and merged payloads are limited to 8 KiB. Larger payloads are rejected.",
		Remedy: "Compress payloads (package codec/zstd), split them into several points or datasets, or keep them in object storage and store their location.",
	}
	if over > 0 {
		f.Severity = critical
		f.Found += fmt.Sprintf(" %s over the limit: their points are rejected.", counted(over, "entity is", "entities are"))
	}
	a.add(f)
}

// families finds tables with too many column families.
func (a *analysis) families() {
	if a.Families < manyFamilies {
		return
	}
	severity := warning
	if a.Families > maxFamilies {
		severity = critical
	}
	a.add(Advice{
		Cause: causeManyFamilies, Severity: severity,
		Found: fmt.Sprintf("The table has %d column families with the given datasets; Bigtable recommends at most about %d.", a.Families, maxFamilies),
		Why: "Each retention class has a family, and another for its heads; each class of rollups has four. All datasets of a table share the families, " +
			"and many families slow down every request.",
		Remedy: "Let datasets and rollups share a few retention classes by name, such as one for each length of time.",
	})
}

// widePrefixes finds prefixes with more entities than one read can handle.
func (a *analysis) widePrefixes() {
	if len(a.Fields) < 2 || a.Head > 0 {
		return
	}
	counts := map[string]int{}
	for i := range a.Entities {
		counts[a.Entities[i].group(len(a.Fields)-1)]++
	}
	most := ""
	for g, n := range counts {
		if n > counts[most] || n == counts[most] && g < most {
			most = g
		}
	}
	n := float64(counts[most]) / a.Share
	if n < widePrefix {
		return
	}
	tenant, _, _ := strings.Cut(most, "#")
	a.add(Advice{
		Cause: causeWidePrefix, Severity: info, Field: a.Fields[len(a.Fields)-2],
		Found: fmt.Sprintf("One value of key field %s of tenant %s has about %.0f entities, and no prefix is narrower.", a.Fields[len(a.Fields)-2], tenant, n),
		Why:   "Under(prefix).Latest finds the newest point of each entity below a prefix. It reads once per entity, which takes seconds for ten thousand.",
		Remedy: fmt.Sprintf("If you need such reads, add a field before %s that divides the entities, or give the schema a Head, so that Under(prefix).Latest reads one row per entity.",
			a.Fields[len(a.Fields)-1]),
	})
}
