package lab_test

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/examples/internal/lab"
)

// With an emulator, the official client dials a connection that it never closes: see tsdb.Open.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("google.golang.org/grpc/internal/grpcsync.(*CallbackSerializer).run"),
		goleak.IgnoreAnyFunction("google.golang.org/grpc.(*addrConn).resetTransportAndUnlock"))
}

// TestShippedFiles: the template and the shipped workloads have no mistakes.
func TestShippedFiles(t *testing.T) {
	files := map[string][]byte{"template": lab.Template()}
	for _, name := range lab.Workloads() {
		text, err := lab.Workload(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = text
	}
	for name, text := range files {
		plan, err := lab.Parse(text)
		if err != nil {
			t.Errorf("%s:\n%v", name, err)
			continue
		}
		if len(plan.Candidates()) < 2 || plan.Name() == "" {
			t.Errorf("%s has the name %q and the candidates %q, want some to compare", name, plan.Name(), plan.Candidates())
		}
	}
}

// TestMistakes: each mistake is explained at its line, with what is allowed.
func TestMistakes(t *testing.T) {
	const head, tail = "datasets:\n  - {name: d, fields: [a(5), b], entities: 100, every: 1m", "}\ncandidates:\n  - key: tenant#entity#~time\n"
	for name, tc := range map[string]struct {
		text string
		want []string // each in the message
	}{
		"empty":              {"", []string{"file is empty", "lab init"}},
		"another kind":       {"- 1\n", []string{"line 1: the file is a list; want fields"}},
		"not YAML":           {"a: b: c\n", []string{"this is not YAML"}},
		"not YAML, below":    {"a: 1\nb: c: d\n", []string{"line 2: this is not YAML"}},
		"two documents":      {head + tail + "---\na: 1\n", []string{"more than one document"}},
		"nothing in it":      {"{}\n", []string{"datasets is missing", "candidates is missing"}},
		"misspelt":           {"durration: 1h\n" + head + tail, []string{"line 1: durration is not a field; did you mean duration?; want candidates, cluster, datasets"}},
		"misspelt inside":    {head + ", evry: 1h" + tail, []string{"line 2: datasets[0].evry is not a field; did you mean every?"}},
		"twice":              {"seed: 1\nseed: 2\n" + head + tail, []string{"line 2: seed is there twice; the first is on line 1"}},
		"no unit":            {"duration: 60\n" + head + tail, []string{`line 1: duration is "60"; want a number with a unit: ms, s, m, h or d`}},
		"other unit":         {"duration: 1 week\n" + head + tail, []string{`duration is "1 week"; want a number with a unit`}},
		"too long":           {"duration: 90d\n" + head + tail, []string{`duration is "90d"; want 1m to 31d`}},
		"size":               {head + ", bytes: 3 GB" + tail, []string{`datasets[0].bytes is "3 GB"; want a number of bytes`}},
		"absurd size":        {head + ", bytes: 64 MB" + tail, []string{`datasets[0].bytes is "64 MB"; want 1 B to 1048576 B`}},
		"share":              {"tenants: {count: 2, largest: 0.6}\n" + head + tail, []string{`tenants.largest is "0.6"; want a percentage, such as 60%`}},
		"share of the small": {"tenants: {count: 2, largest: 5%}\n" + head + tail, []string{"want at least the equal part of 2 tenants, 50%"}},
		"time of day":        {"starts: 8am\n" + head + tail, []string{`starts is "8am"; want a time of the day, such as 08:00`}},
		"curve":              {head + ", day: weekend" + tail, []string{`datasets[0].day is "weekend"; want flat, office, evening, commute`}},
		"curve of numbers":   {head + ", day: [1, 2]" + tail, []string{"datasets[0].day has 2 numbers; want 24"}},
		"rate":               {head + tail + "queries:\n  - {kind: latest, rate: 100}\n", []string{`line 6: queries[0].rate is "100"; want a rate per s, m, h or d`}},
		"kind":               {head + tail + "queries:\n  - {kind: newest, rate: 1/s}\n", []string{`queries[0].kind is "newest"; want latest, latest_many`}},
		"prefix":             {head + tail + "queries:\n  - {kind: under, fields: 2, rate: 1/s}\n", []string{"want fields: 0 to 1"}},
		"dataset":            {head + tail + "queries:\n  - {kind: latest, dataset: x, rate: 1/s}\n", []string{`queries[0].dataset is "x"; want d`}},
		"key without time":   {head + "}\ncandidates:\n  - key: tenant#entity\n", []string{"line 4: candidates[0].key", "there is no time in the key"}},
		"key without field":  {head + "}\ncandidates:\n  - key: tenant#b#~time\n", []string{"key field a of dataset d is missing"}},
		"key, unknown":       {head + "}\ncandidates:\n  - key: tenant#c#~time\n", []string{`"c" is no element of a key of dataset d; want tenant, dataset, entity`}},
		"salts":              {head + "}\ncandidates:\n  - key: salt(1)#tenant#entity#~time\n", []string{"want salt(2) to salt(100)"}},
		"heads of raw keys":  {head + "}\ncandidates:\n  - {key: time#entity, heads: 1}\n", []string{"candidates[0].heads is for keys of this module"}},
		"same name":          {head + "}\ncandidates:\n  - key: time#entity\n  - key: time#entity\n", []string{`another candidate is called "time#entity"`}},
		"expected":           {head + tail + "expect: {candidate: best, hottest_cpu: 60}\n", []string{`expect.candidate is "best"; want the name of a candidate`, `expect.hottest_cpu is "60"; want a percentage`}},
		"first field":        {"datasets:\n  - {name: d, fields: [a, b], entities: 1, every: 1s}\ncandidates:\n  - key: time#entity\n", []string{"want how many entities share a value, such as a(100)"}},
		"alias":              {"tenants: &x {count: 2}\nexpect: *x\n" + head + tail, []string{"line 2: expect is an alias"}},
		"alias of a curve":   {"tenants: &office {count: 2}\n" + head + ", day: *office" + tail, []string{"line 3: datasets[0].day is an alias"}},
		"alias of a field":   {"name: &a x\ndatasets:\n  - {name: d, fields: [*a], entities: 1, every: 1s}\ncandidates:\n  - key: time#entity\n", []string{"line 3: datasets[0].fields has an alias"}},
		"tiny curve":         {head + ", day: [1e-320, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]" + tail, []string{`datasets[0].day has "1e-320"; want 24 numbers`}},
		"control characters": {head + "}\ncandidates:\n  - {key: time#entity, name: \"a\\e[31m\\tb\"}\n", []string{`line 4: candidates[0].name is "a\x1b[31m\tb"; want printable text on one line`}},
		"lines in a key":     {head + "}\ncandidates:\n  - key: \"time#\\nentity\"\n", []string{`line 4: candidates[0].key is "time#\nentity"; want printable text`}},
		"too many points":    {"datasets:\n  - {name: d, fields: [a], entities: 1000M, every: 10ms}\ncandidates:\n  - key: time#entity\n", []string{"are 1e+11 points a second; want at most 1e+08"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := lab.Parse([]byte(tc.text))
			if _, ok := errors.AsType[*lab.FileError](err); !ok || !errors.Is(err, lab.ErrInvalid) {
				t.Fatalf("got %v, want a *FileError that matches ErrInvalid, of:\n%s", err, tc.text)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is\n%v\nwant %q in it", err, want)
				}
			}
			if n := strings.Count(err.Error(), "\n"); n >= len(tc.want) {
				t.Errorf("the error has %d lines, want %d:\n%v", n+1, len(tc.want), err)
			}
		})
	}
}

// TestSameMistakesEachTime: the same file has the same mistakes in the same order, each time it is read.
func TestSameMistakesEachTime(t *testing.T) {
	first := ""
	for i := range 50 {
		_, err := lab.Parse([]byte("tenants: {count: 1kM}\ndatasets:\n  - {}\ncandidates: [{key: time#a}]\n"))
		if err == nil || !strings.Contains(err.Error(), `line 1: tenants.count is "1kM"; want a whole number`) {
			t.Fatalf("got %v, want a mistake on line 1", err)
		}
		if i == 0 {
			first = err.Error()
		}
		if got := err.Error(); got != first {
			t.Fatalf("the mistakes are\n%s\nand then\n%s", first, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(lab.Template())
	f.Add([]byte("datasets: [{fields: [a(0x1)]}]"))
	f.Add([]byte("candidates: [{key: \"#\"}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if plan, err := lab.Parse(text); (plan == nil) == (err == nil) {
			t.Errorf("Parse returns %v and %v, want one of them", plan, err)
		}
	})
}
