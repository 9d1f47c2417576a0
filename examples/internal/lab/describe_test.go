package lab_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/lab"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/keys"
)

// TestDescribe: the file has what the samples say, also where they are a part of the entities, and shows no names.
func TestDescribe(t *testing.T) {
	schema := tsdb.MustDefine("power", tsdb.Key("street name", "time"), codec.Float64(), tsdb.SchemaOptions{Salts: 8, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2}})
	sample := func(id string, n int, share float64) (s keys.Sample) {
		s.Share = share
		for i := range n {
			rate := 1.0 / 900
			if i == 0 {
				rate = 100 * rate
			}
			s.Entities = append(s.Entities, keys.SampledEntity{
				Tenant: tenant.MustParse(id), Entity: tsdb.NewEntity(fmt.Sprint("secret", i/20), fmt.Sprint("m", i)), Rate: rate, Payload: 48,
			})
		}
		return s
	}
	text, err := lab.Describe(schema, []keys.Sample{sample("acme", 200, 0.1), sample("beta", 100, 0), {}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fields: [field1(140), field2]", "entities: 2100", "bytes: 48", "tenants: {count: 2, largest: 96%}", "key: tenant#salt(8)#entity#~time, heads: 2", "key: time#field1#field2"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in the file:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "secret") || strings.Contains(string(text), "acme") {
		t.Errorf("the file shows names:\n%s", text)
	}
	if _, err := lab.Parse(text); err != nil {
		t.Errorf("the file has mistakes: %v\n%s", err, text)
	}
	for name, samples := range map[string][]keys.Sample{"none": nil, "empty": {{}}, "too many": make([]keys.Sample, 1001)} {
		if _, err := lab.Describe(schema, samples); !errors.Is(err, lab.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if _, err := lab.Describe(nil, nil); !errors.Is(err, lab.ErrInvalid) {
		t.Errorf("no dataset: %v, want ErrInvalid", err)
	}
}
