package lab

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/keys"
)

const (
	maxDescribed     = 1000 // samples
	describedFields  = maxFields
	defaultDescribed = 100 // bytes, where no point was found
)

// sampled is what samples say about a dataset.
type sampled struct {
	name     string
	fields   []string
	salts    int
	heads    int
	tenants  []float64 // entities of each
	rates    []float64 // points a second of sampled entities that write
	bytes    []int
	distinct []float64 // of each leading field: values in all tenants, estimated
}

// Describe writes a file for what is stored in a dataset: entities, sizes and intervals, from one sample of
// keys.TakeSample for each of up to 1,000 tenants. It is a draft: it says what to check, and its queries are
// examples, because nothing stored tells what programs ask. The candidates are the dataset's own key, others that are
// common, and heads. Names of tenants and entities do not appear in the file.
//
// It does no I/O. Errors match ErrInvalid: a dataset that is not from tsdb.Define or keys.TakeSample, no samples, or
// samples without entities.
func Describe(dataset tsdb.Dataset, samples []keys.Sample) ([]byte, error) {
	shape, err := inside.Of(dataset).Shape()
	if err != nil {
		return nil, err
	}
	if n := len(samples); n > maxDescribed {
		return nil, invalid.New(ErrInvalid, "samples", fmt.Sprintf("%d long", n), fmt.Sprintf("at most %d", maxDescribed))
	}
	s := sampled{name: shape.Name, fields: shape.Fields, salts: shape.Salts, heads: shape.Head.Points}
	for _, sample := range samples {
		if len(sample.Entities) > 0 {
			s.add(sample)
		}
	}
	if len(s.tenants) == 0 {
		return nil, invalid.New(ErrInvalid, "samples", "without entities", "samples of tenants that have points in dataset "+shape.Name)
	}
	return s.file(), nil
}

func (s *sampled) add(sample keys.Sample) {
	entities := float64(len(sample.Entities))
	if sample.Share > 0 && sample.Share <= 1 {
		entities = min(math.Round(entities/sample.Share), maxEntities)
	}
	s.tenants = append(s.tenants, entities)
	if s.distinct == nil {
		s.distinct = make([]float64, len(s.fields))
	}
	values := make([]map[string]bool, len(s.fields))
	for _, e := range sample.Entities {
		if e.Rate > 0 {
			s.rates = append(s.rates, e.Rate)
		}
		if e.Payload > 0 {
			s.bytes = append(s.bytes, e.Payload)
		}
		for i := range s.fields {
			if values[i] == nil {
				values[i] = map[string]bool{}
			}
			parts := e.Entity.Parts()
			values[i][strings.Join(parts[:min(i+1, len(parts))], "#")] = true
		}
	}
	for i, v := range values {
		n := float64(len(v))
		if seen := float64(len(sample.Entities)); n > seen/2 { // most values occurred once, so there are as many more as there are entities
			n *= entities / seen
		}
		s.distinct[i] += n
	}
}

func (s *sampled) file() []byte {
	all, largest := 0.0, 0.0
	for _, n := range s.tenants {
		all += n
		largest = max(largest, n)
	}
	every, skew := time.Minute, 0.0 // if no entity has written twice
	if len(s.rates) > 0 {
		slices.SortFunc(s.rates, func(a, b float64) int { return -cmp.Compare(a, b) })
		sum := 0.0
		for _, r := range s.rates {
			sum += r
		}
		every = rounded(time.Duration(float64(len(s.rates)) / sum * float64(time.Second)))
		if n := len(s.rates); n >= 10 {
			skew = math.Log(s.rates[0]/s.rates[n/2]) / math.Log(float64(n/2+1))
			skew = min(math.Round(max(skew, 0)*10)/10, 1.5)
		}
	}
	size := defaultDescribed
	if len(s.bytes) > 0 {
		slices.Sort(s.bytes)
		size = s.bytes[len(s.bytes)/2]
	}
	fields := s.fields
	left := ""
	if len(fields) > describedFields {
		left = fmt.Sprintf(" # the dataset has %d; the lab takes %d", len(fields), describedFields)
		fields = append(slices.Clone(fields[:describedFields-1]), fields[len(fields)-1])
	}
	var names, lab []string
	reserved := map[string]bool{"tenant": true, "dataset": true, "entity": true, "time": true, "salt": true}
	shared := math.Inf(1)
	for i, f := range fields {
		name := f
		if reserved[name] || sharedField.FindString(name) == "" {
			name = "field" + strconv.Itoa(i+1) // a name that the lab cannot use
		}
		names = append(names, name)
		if i < len(fields)-1 {
			shared = min(shared, max(math.Round(all/s.distinct[i]), 1))
			name = fmt.Sprintf("%s(%.0f)", name, shared)
		}
		lab = append(lab, name)
	}
	salt := ""
	if s.salts > 0 {
		salt = fmt.Sprintf("salt(%d)#", s.salts)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# A draft from a sample of dataset %s: %d tenants, %d of their entities. tidectl lab check says what is not allowed.\n", s.name, len(s.tenants), len(s.rates))
	fmt.Fprintf(&b, "# Check: are these all tenants, and is the rate that of a busy hour? The queries are examples: nothing stored tells what programs ask.\n\n")
	fmt.Fprintf(&b, "name: %s\nduration: 1h\nheavy: 5m\n", s.name)
	fmt.Fprintf(&b, "tenants: {count: %d", len(s.tenants))
	if share := largest / all; len(s.tenants) > 1 && share > 1.5/float64(len(s.tenants)) {
		fmt.Fprintf(&b, ", largest: %.0f%%", math.Ceil(share*100))
	}
	fmt.Fprintf(&b, "}\ndatasets:\n  - name: %s\n    fields: [%s]%s\n    entities: %.0f\n    every: %s\n    bytes: %d\n    skew: %s\n", s.name, strings.Join(lab, ", "), left, all, every, min(max(size, 1), 1<<20), number(skew))
	fmt.Fprintf(&b, "    # day: office\n    # late: {share: 5%%, up_to: 10m}\n    # bursts: {every: 15m, lasts: 30s, times: 5}\n    keep: 90d\n")
	fmt.Fprintf(&b, "queries:\n  - {kind: latest, rate: 100/s}\n  - {kind: range, last: 1h, rate: 10/s}\n")
	if len(fields) > 1 {
		fmt.Fprintf(&b, "  - {kind: under, fields: 1, rate: 1/s}\n")
	}
	heads := ""
	if s.heads > 0 {
		heads = fmt.Sprintf(", heads: %d", s.heads)
	}
	fmt.Fprintf(&b, "candidates:\n  - {name: as it is, key: tenant#%sentity#~time%s}\n", salt, heads)
	if s.heads == 0 {
		fmt.Fprintf(&b, "  - {name: with heads, key: tenant#%sentity#~time, heads: 1}\n", salt)
	}
	if s.salts == 0 {
		fmt.Fprintf(&b, "  - {name: with salts, key: tenant#salt(16)#entity#~time}\n")
	}
	fmt.Fprintf(&b, "  - {name: time first, key: time#%s}\n", strings.Join(names, "#"))
	fmt.Fprintf(&b, "expect:\n  candidate: as it is\n  hottest_cpu: 70%%\n")
	return b.Bytes()
}

// rounded shortens an estimate.
func rounded(d time.Duration) time.Duration {
	d = min(max(d, 10*time.Millisecond), 366*day)
	for _, unit := range []time.Duration{time.Hour, time.Minute, time.Second, 100 * time.Millisecond, 10 * time.Millisecond} {
		if d >= 2*unit {
			return d.Round(unit)
		}
	}
	return d
}
