package keyadvice_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/keyadvice"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var acme = tenant.MustParse("acme")

// entity returns the entity of some values of key fields.
func entity(t *testing.T, d tsdb.Dataset, values ...any) tsdb.Entity {
	t.Helper()
	e, err := d.Entity(values...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestAdviseReadsNumbers: consecutive signed numbers are recognised as numbers, and none is called unpadded.
func TestAdviseReadsNumbers(t *testing.T) {
	d := tsdb.MustDefine("steps", tsdb.Key().Int("step", 6), codec.String(), tsdb.SchemaOptions{})
	var sample keyadvice.Sample
	for i := range 1000 {
		sample.Entities = append(sample.Entities, keyadvice.SampledEntity{Tenant: acme, Entity: entity(t, d, i-500), Rate: 1 + float64(i/900)*9})
	}
	advice, err := keyadvice.Advise(d, sample)
	if err != nil || len(advice) != 1 || advice[0].Cause != "sequential" {
		t.Errorf("advice %v, error %v; want one, about consecutive numbers", advice, err)
	}
}

// TestAdviseRefusesPartsOfAnotherKind: the error names field, value and limit, as that of a write does.
func TestAdviseRefusesPartsOfAnotherKind(t *testing.T) {
	d := tsdb.MustDefine("arrivals", tsdb.Key("line").Uint("stop", 5).Text("door"), codec.String(), tsdb.SchemaOptions{})
	unpadded := keyadvice.SampledEntity{Tenant: acme, Entity: tsdb.NewEntity("U8", "42", "1")}
	_, err := keyadvice.Advise(d, keyadvice.Sample{Entities: []keyadvice.SampledEntity{unpadded}})
	const want = `key field stop is "42"; want a number from 0 to 99999, written as 5 digits with leading zeros`
	if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("Advise: %v, want ErrInvalid with %q", err, want)
	}
}

// TestSampleOfKinds: the dataset of a sample, which is that of the catalogue, accepts and returns values by their
// kinds.
func TestSampleOfKinds(t *testing.T) {
	kinds := tsdb.MustDefine("visits", tsdb.Key().ReversedID("user").Int("level", 2), codec.String(), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, kinds)
	for user := range 3 {
		if err := kinds.For(store, acme).Put(t.Context(), entity(t, kinds, 1040+user, -user), time.Now(), "x"); err != nil {
			t.Fatal(err)
		}
	}
	d, sample, err := keyadvice.TakeSample(t.Context(), store, "visits", acme, 0)
	if err != nil || len(sample.Entities) != 3 {
		t.Fatalf("sample %+v, error %v", sample, err)
	}
	e := entity(t, d, "1041", "-1")
	var user, level string
	if err := d.Scan(e, &user, &level); err != nil || user != "1041" || level != "-1" || e.String() != "14010000000000000000/n98" {
		t.Errorf("%v reads as %s, %s, %v", e, user, level, err)
	}
}
