// Package keyadvice checks the keys of a dataset before it has points, because keys cannot be changed afterwards.
//
// Advise takes a sample of the dataset's entities, and reports keys that create hot spots, prevent reads by prefix,
// show personal data or waste space. TakeSample selects a sample from a tenant's stored data.
//
// The rules and their figures follow the public guides of Cloud Bigtable:
// https://cloud.google.com/bigtable/docs/schema-design,
// https://cloud.google.com/bigtable/docs/schema-design-time-series, https://cloud.google.com/bigtable/docs/performance
// and https://cloud.google.com/bigtable/quotas. They know neither cluster nor load, which Key Visualizer shows.
package keyadvice

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// maxSample is how many entities a Sample may have. Some thousand random entities give the same advice.
const maxSample = 100_000

// Sample describes the entities that a dataset has or will have. With the zero Sample, Advise checks only the schema.
type Sample struct {
	// Entities has up to 100,000 entities, in any order. The rates of repeated entities are added.
	Entities []SampledEntity
	// Share is the fraction of all entities in the sample, above 0 and up to 1. Advise divides the rates of whole
	// tenants by it. Zero is 1: there are no other entities.
	Share float64
	// Arrival states that Entities are in the order of their first write. Advise then finds key fields with growing
	// values of any form. Without it, the order is ignored.
	Arrival bool
	// OtherDatasets are the other datasets of the same table: their column families count too.
	OtherDatasets []tsdb.Dataset
}

// SampledEntity is one entity of a Sample.
type SampledEntity struct {
	Tenant tenant.ID
	Entity tsdb.Entity
	// Rate is how many points a second are written to the entity at a busy time. Zero is none. If it is zero for all
	// entities, rates count as unknown, and the rules that need them are skipped.
	Rate float64
	// Payload is the encoded size of a typical payload in bytes. Zero is unknown.
	Payload int
}

// Advice is one remark of Advise. Its texts are for people and may change; Cause and Severity are for programs.
type Advice struct {
	// Cause identifies the subject. Causes are stable: a program may ignore the ones that it accepts. Each
	// is reported from a threshold on:
	//
	//   - time-first: a key field of times with no other field, or too few values, before it. All new points are then
	//     written in one place. Behind other fields it is reported from 1,000 points a second below one prefix. Numbers
	//     that could be times count as ids if at least 50 of them (20 without gaps) are written evenly, old and new
	//     alike.
	//   - sequential: a key field whose new values sort after the old ones: counters, ids that begin with the time
	//     (UUIDs of versions 6 and 7, ULIDs, KSUIDs, snowflakes), or values that grow according to Sample.Arrival. It is
	//     a warning if the highest tenth of the values has at least three tenths of the writes. If writes are even or
	//     rates unknown, it is an info for the first field only. Numbers after a text (device-0042) are then reported
	//     only if Sample.Arrival shows that they grow, and ids by time only if rates are unknown or Arrival shows it.
	//   - hot-entity: an entity with a quarter of all writes, five times the average, from 100 points a second; or any
	//     entity with 5,000, half of what one server takes. No key can spread one entity.
	//   - hot-head: an entity with 20 points a second or more in a schema with Head.
	//   - busy-tenant: a tenant with 10,000 points a second or more, about what one server takes, in a schema without
	//     Salts.
	//   - few-first-values: a first field where up to four values, with many entities each, have nine tenths of a
	//     tenant's 5,000 or more points a second. With less load, few values do no harm.
	//   - unpadded-number: a key field of numbers whose text does not sort by number. Numbers of more than 15 digits
	//     count as ids.
	//   - hashed-part: a key field of hashes or random ids, different for each entity, before a field with few values
	//     that could group the entities. Random ids at the end of a key, or with entities below them, are fine.
	//   - personal-data: personal data that keys.CheckPersonal finds in keys and in tenants' names. The texts do not
	//     show it. At least 20 IPv4 addresses of many networks are an info, because they may belong to persons or to
	//     machines.
	//   - long-key: a row key of 2 KiB or more, of 4 KiB at most; or keys with a median of 256 bytes or more.
	//   - long-names: names of tenant, dataset, retention class and column that together take 64 bytes or more, and more
	//     than the payload; 96 bytes if payloads are unknown.
	//   - large-payload: a payload of half the dataset's limit or more. The limit is 10 MiB, or less with Head or Merge.
	//   - many-families: 50 column families or more, of 100 at most, for the dataset, Sample.OtherDatasets and the store
	//     itself.
	//   - wide-prefix: a prefix of all key fields but the last with 10,000 entities or more below it, in a schema
	//     without Head.
	Cause string `json:"cause"`
	// Severity is how much the advice matters:
	//
	//   - info is useful to know while keys can still be changed. Nothing fails because of it.
	//   - warning will cost throughput or slow reads as load or data grow.
	//   - critical fails with this sample: one server gets more than it can take, points are refused, or keys show
	//     personal data.
	Severity string `json:"severity"`
	Field    string `json:"field,omitempty"` // the key field concerned; empty for none
	Found    string `json:"found"`           // what was found, with figures
	Why      string `json:"why"`             // why it matters
	Remedy   string `json:"remedy"`          // what helps
}

// Advise checks the key of a dataset with a sample of its entities. It returns the most severe advice first, and an
// empty slice if it finds no problem.
//
// It does no I/O, is safe for concurrent use, and takes some microseconds and some hundred bytes for each entity:
// seconds and 80 MB for the largest sample.
//
// Errors match tsdb.ErrInvalid: a dataset that is not from tsdb.Define, more than 100,000 entities, or entities
// that the dataset does not accept, with their indexes. An entity whose row keys are too long is not an error but
// advice (causeLongKey).
func Advise(d tsdb.Dataset, s Sample) ([]Advice, error) {
	in, err := inputOf(d, s)
	if err != nil {
		return nil, err
	}
	return run(in), nil
}

func inputOf(d tsdb.Dataset, s Sample) (input, error) {
	shape, err := inside.Of(d).Shape()
	if err != nil {
		return input{}, err
	}
	shapes := []*dataset.Dataset{shape}
	for i, other := range s.OtherDatasets {
		o, err := inside.Of(other).Shape()
		if err != nil {
			return input{}, fmt.Errorf("OtherDatasets %d: %w", i, err)
		}
		shapes = append(shapes, o)
	}
	switch {
	case !(s.Share >= 0 && s.Share <= 1):
		return input{}, invalid.New(tsdb.ErrInvalid, "Share", strconv.FormatFloat(s.Share, 'g', -1, 64), "0 for 1, or above 0 up to 1")
	case len(s.Entities) > maxSample:
		return input{}, invalid.New(tsdb.ErrInvalid, "Entities", strconv.Itoa(len(s.Entities)), fmt.Sprintf("at most %d", maxSample))
	}
	written := shape.Columns[0]
	if shape.Head.Only {
		written = shape.HeadColumns[0]
	}
	in := input{
		Dataset: shape.Name, Fields: shape.Fields, Salts: shape.Salts,
		Family: written.Family, Qualifier: written.Qualifier, Families: len(dataset.FamiliesOf(shapes)),
		Head: shape.Head.Points, MaxPayload: shape.MaxPayload(),
		Entities: make([]entity, len(s.Entities)), Share: s.Share, Arrival: s.Arrival,
	}
	if in.Share == 0 {
		in.Share = 1
	}
	in.Share = max(in.Share, minShare)
	return in, fillEntities(in.Entities, shape, s.Entities)
}

const (
	// minShare and maxRate keep what is computed from them finite.
	minShare = 1e-12
	maxRate  = 1e12
	// maxRefused is how many entities of a sample an error names.
	maxRefused = 10
)

// fillEntities fills out with the properties of a sample's entities that the rules need.
func fillEntities(out []entity, d *dataset.Dataset, entities []SampledEntity) error {
	var refused []error
	for i, e := range entities {
		one, err := entityOf(d, e)
		if err != nil {
			if len(refused) == maxRefused {
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

func entityOf(d *dataset.Dataset, e SampledEntity) (entity, error) {
	switch {
	case e.Tenant.IsZero():
		return entity{}, invalid.New(tsdb.ErrInvalid, "tenant", "empty", "a tenant from tenant.Parse")
	case !(e.Rate >= 0 && e.Rate <= maxRate):
		return entity{}, invalid.New(tsdb.ErrInvalid, "Rate", strconv.FormatFloat(e.Rate, 'g', -1, 64), fmt.Sprintf("0 to %g points a second", maxRate))
	case e.Payload < 0 || e.Payload > math.MaxInt32:
		return entity{}, invalid.New(tsdb.ErrInvalid, "Payload", strconv.Itoa(e.Payload), "0 for unknown, or the size in bytes, up to 2 GiB")
	}
	space, err := d.Space(e.Tenant)
	if err != nil {
		return entity{}, err
	}
	path := inside.Of(e.Entity).Path()
	key := space.KeyLen(path)
	if err := space.CheckPath(path); err != nil && key <= rowkey.MaxKey {
		return entity{}, err
	}
	if d.BesideRollups(space).KeyLen(path) > rowkey.MaxKey {
		key = max(key, rowkey.MaxKey+1)
	}
	one := entity{Tenant: e.Tenant.String(), Path: path, Parts: space.Judged(path), Key: key, Rate: e.Rate, Payload: e.Payload}
	if len(one.Parts) != len(d.Fields) {
		return entity{}, space.CheckPath(path)
	}
	return one, nil
}
