package tsdb

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/advise"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// MaxSample is how many entities a Sample may have. A sample of some thousand that were picked at random tells as much.
const MaxSample = 100_000

// Sample is what Advise is told about the entities that a dataset has, or is going to have. The zero Sample has none, and
// leaves what can be said of the schema alone.
type Sample struct {
	// Entities are those of the sample, up to MaxSample, in any order. The rates of one that is listed twice are added up.
	Entities []Sampled
	// Share is which part of all entities the sample holds, above 0 and up to 1; what is said of a tenant's rate is scaled by
	// it. Zero is 1: there are no others.
	Share float64
	// Arrival says that Entities stand in the order in which they were first written. Then key fields whose values grow are
	// found whatever they look like. Without it their order means nothing.
	Arrival bool
	// OtherDatasets are the other datasets of the same table: their column families count too.
	OtherDatasets []Dataset
}

// Sampled is one entity of a Sample.
type Sampled struct {
	Tenant tenant.ID
	Entity Entity
	// Rate is how many points a second are written of it at present, at a busy time. Zero is none. Where it is zero for all
	// entities, rates count as unknown, and what depends on them is not judged.
	Rate float64
	// Payload is the size of a typical payload in bytes, encoded. Zero is unknown.
	Payload int
}

// Advice is one remark of Advise. Its texts are for people and may change; Cause and Severity are for programs.
type Advice struct {
	Cause    Cause    `json:"cause"`
	Severity Severity `json:"severity"`
	Field    string   `json:"field,omitempty"` // the key field that it is about; empty for none
	Found    string   `json:"found"`           // what it is, with figures
	Why      string   `json:"why"`             // why it matters
	Remedy   string   `json:"remedy"`          // what helps
}

// String returns the advice as one line of text.
func (a Advice) String() string {
	return fmt.Sprintf("%s %s: %s %s %s", a.Severity, a.Cause, a.Found, a.Why, a.Remedy)
}

// Severity is how much an Advice matters. The zero Severity is SeverityInfo.
type Severity int

// The severities.
const (
	// SeverityInfo is worth knowing while keys can still be changed; nothing fails by it.
	SeverityInfo = Severity(advise.Info)
	// SeverityWarning will cost throughput or answers as load or data grow.
	SeverityWarning = Severity(advise.Warning)
	// SeverityCritical fails with this sample: one server gets more than it takes, points are refused, or keys show personal data.
	SeverityCritical = Severity(advise.Critical)
)

// String returns info, warning or critical.
func (s Severity) String() string {
	switch s {
	case SeverityInfo:
		return "info"
	case SeverityWarning:
		return "warning"
	case SeverityCritical:
		return "critical"
	}
	return "severity " + strconv.Itoa(int(s))
}

// MarshalText implements encoding.TextMarshaler.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Cause names what an Advice is about. Causes are stable: a program may pass over those that it knows of.
type Cause string

// The causes. What each is about and from which figure on is said here; the guides behind them are
// https://cloud.google.com/bigtable/docs/schema-design, …/schema-design-time-series and …/performance.
const (
	// CauseTimeFirst is a key field of times with nothing, or too little for its rate, before it. All that is new is written in one
	// place. Behind other fields it is reported from 1,000 points a second below one prefix on. Numbers that stand where times do are
	// taken for ids where 50 and more of them are known to be written evenly, old and new; without gaps 20, and fewer if rates are known.
	CauseTimeFirst = Cause(advise.TimeFirst)
	// CauseSequential is a key field whose new values sort behind the old ones: counters, ids that begin with the time (UUIDs of
	// version 6 and 7, ULIDs, KSUIDs, snowflakes), or what Sample.Arrival shows. It is a warning where the upper tenth of the values has three tenths of the writes and more. Where
	// writes are even or unknown it is an info, for the first field alone, and there is none for numbers behind a text
	// (device-0042), unless Sample.Arrival shows them, and, with even writes, ids by time.
	CauseSequential = Cause(advise.Sequential)
	// CauseHotEntity is an entity with a quarter of all writes, five times the average, from 100 points a second on; or any
	// with 5,000, half of what one server takes. No key can spread one entity.
	CauseHotEntity = Cause(advise.HotEntity)
	// CauseHotHead is an entity with 20 points a second or more in a schema with Head.
	CauseHotHead = Cause(advise.HotHead)
	// CauseBusyTenant is a tenant with 10,000 points a second or more, about what one server takes, in a schema without Salts.
	CauseBusyTenant = Cause(advise.BusyTenant)
	// CauseFewFirstValues is a first field of which up to four values, with many entities each, hold nine tenths of a
	// tenant's 5,000 points a second or more. With less load few values do no harm.
	CauseFewFirstValues = Cause(advise.FewFirstValues)
	// CauseUnpaddedNumber is a key field of numbers that do not sort by number. Those of more than 15 digits count as ids.
	CauseUnpaddedNumber = Cause(advise.UnpaddedNumber)
	// CauseHashedPart is a key field of hashes or random ids, of which each entity has its own, before a field that a few
	// values could have grouped by. Random ids at the end of a key, or with entities below them, are fine.
	CauseHashedPart = Cause(advise.HashedPart)
	// CausePersonalData is what package tsdb/privacy finds in keys and in tenants' names. It is not shown in texts. What may be a
	// person's or a machine's is an info, where 20 values and more are IPv4 addresses of many networks.
	CausePersonalData = Cause(advise.PersonalData)
	// CauseLongKey is a row key of 2 KiB or more, of 4 at most; or keys of 256 bytes and more as a rule.
	CauseLongKey = Cause(advise.LongKey)
	// CauseLongNames are names of tenant, dataset, retention class and column that together take 64 bytes and more than the payload;
	// 96 bytes where payloads are unknown.
	CauseLongNames = Cause(advise.LongNames)
	// CauseLargePayload is a payload of half the dataset's limit or more: 10 MiB, or less with Head or Merge.
	CauseLargePayload = Cause(advise.LargePayload)
	// CauseManyFamilies are 50 column families or more, of 100 at most, for the dataset, Sample.OtherDatasets and the store itself.
	CauseManyFamilies = Cause(advise.ManyFamilies)
	// CauseWidePrefix is a prefix as long as prefixes can be with 10,000 entities or more below it, in a schema without Head.
	CauseWidePrefix = Cause(advise.WidePrefix)
)

// Advise judges a dataset's key by a sample of its entities: what would make a hot spot, break reads by prefix, show what keys must
// not show, or waste room. It is for the time before there are points, since keys cannot be changed afterwards. What is fine gets
// no advice: it returns an empty slice. The severest advice comes first.
//
// It goes by figures of public guides, such as 10,000 writes a second for one server, and knows neither the cluster nor when load
// comes: Key Visualizer shows what is. It does no I/O, is safe for concurrent use, and takes some
// microseconds and some hundred bytes for each entity: seconds and 80 MB for the largest sample. The order of the entities matters only with Sample.Arrival.
//
// Errors match ErrInvalid: a dataset that is not from Define, more than MaxSample entities, or entities that the dataset does not
// take, joined and named by their index. An entity whose keys are too long is advice (CauseLongKey).
func Advise(d Dataset, s Sample) ([]Advice, error) {
	in, err := adviseInput(d, s)
	if err != nil {
		return nil, err
	}
	found := advise.Run(in)
	out := make([]Advice, len(found))
	for i, f := range found {
		out[i] = Advice{Cause: Cause(f.Cause), Severity: Severity(f.Severity), Field: f.Field, Found: f.Found, Why: f.Why, Remedy: f.Remedy}
	}
	return out, nil
}

func adviseInput(d Dataset, s Sample) (advise.Input, error) {
	if d == nil || d.shape() == nil {
		return advise.Input{}, invalid.New(ErrInvalid, "dataset", "zero", "a schema from Define")
	}
	shape := d.shape()
	shapes := []*dataset.Dataset{shape}
	for i, other := range s.OtherDatasets {
		if other == nil || other.shape() == nil {
			return advise.Input{}, invalid.New(ErrInvalid, "OtherDatasets "+strconv.Itoa(i), "zero", "a schema from Define")
		}
		shapes = append(shapes, other.shape())
	}
	switch {
	case !(s.Share >= 0 && s.Share <= 1):
		return advise.Input{}, invalid.New(ErrInvalid, "Share", strconv.FormatFloat(s.Share, 'g', -1, 64), "0 for 1, or above 0 up to 1")
	case len(s.Entities) > MaxSample:
		return advise.Input{}, invalid.New(ErrInvalid, "Entities", strconv.Itoa(len(s.Entities)), fmt.Sprintf("at most %d", MaxSample))
	}
	written := shape.Columns
	if shape.Head.Only {
		written = shape.HeadColumns
	}
	in := advise.Input{
		Dataset: shape.Name, Fields: shape.Fields, Salts: shape.Salts,
		Family: written[0].Family, Qualifier: written[0].Qualifier, Families: len(dataset.FamiliesOf(shapes)),
		Head: shape.Head.Points, MaxPayload: shape.MaxPayload(),
		Entities: make([]advise.Entity, len(s.Entities)), Share: s.Share, Arrival: s.Arrival,
	}
	if in.Share == 0 {
		in.Share = 1
	}
	in.Share = max(in.Share, leastShare)
	return in, adviseEntities(shape, in.Entities, s.Entities)
}

const (
	// leastShare and mostRate keep what is computed of them finite.
	leastShare = 1e-12
	mostRate   = 1e12
	// mostRefused is how many entities of a sample an error names.
	mostRefused = 10
)

// adviseEntities fills out with what the rules need of the entities of a sample.
func adviseEntities(d *dataset.Dataset, out []advise.Entity, entities []Sampled) error {
	var refused []error
	for i, e := range entities {
		one, err := adviseEntity(d, e)
		if err != nil {
			if len(refused) == mostRefused {
				refused = append(refused, errors.New("and more"))
				break
			}
			refused = append(refused, fmt.Errorf("entity %d of the sample: %w", i, err))
			continue
		}
		out[i] = one
	}
	return errors.Join(refused...)
}

func adviseEntity(d *dataset.Dataset, e Sampled) (advise.Entity, error) {
	switch {
	case e.Tenant.IsZero():
		return advise.Entity{}, invalid.New(ErrInvalid, "tenant", "empty", "a tenant from tenant.Parse")
	case !(e.Rate >= 0 && e.Rate <= mostRate):
		return advise.Entity{}, invalid.New(ErrInvalid, "Rate", strconv.FormatFloat(e.Rate, 'g', -1, 64), fmt.Sprintf("0 to %g points a second", mostRate))
	case e.Payload < 0 || e.Payload > math.MaxInt32:
		return advise.Entity{}, invalid.New(ErrInvalid, "Payload", strconv.Itoa(e.Payload), "0 for unknown, or more bytes, up to 2 GiB")
	}
	space, err := d.Space(e.Tenant)
	if err != nil {
		return advise.Entity{}, err
	}
	path := e.Entity.path
	key := len(space.AppendPoint(nil, path, 0))
	if d.Identity {
		key += 1 + rowkey.MaxID
	}
	if err := space.CheckPath(path); err != nil && key <= rowkey.MaxKey {
		return advise.Entity{}, err
	}
	if d.BesideRollups(space).CheckPath(path) != nil {
		key = max(key, rowkey.MaxKey+1) // of a rollup
	}
	one := advise.Entity{Tenant: e.Tenant.String(), Path: path, Parts: space.Judged(path), Key: key, Rate: e.Rate, Payload: e.Payload}
	if len(one.Parts) != len(d.Fields) {
		return advise.Entity{}, space.CheckPath(path)
	}
	return one, nil
}
