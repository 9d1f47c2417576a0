package lab_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tidemark-go/tidemark/examples/internal/lab"
)

// Two row keys for the same load: how many rows the service looks at for the newest point of a truck.
func Example() {
	plan, err := lab.Parse([]byte(`
name: trucks
duration: 1m
heavy: 0s
datasets:
  - {name: positions, fields: [truck], entities: 100, every: 1s, bytes: 40}
queries:
  - {kind: latest, rate: 2/s}
candidates:
  - {name: truck first, key: tenant#truck#~time}
  - {name: time first, key: time#truck}
expect:
  candidate: truck first
  rows_per_query: 2
`))
	if err != nil {
		log.Fatal(err)
	}
	report, err := plan.Run(context.Background(), lab.RunOptions{Scale: 1, Speed: 600})
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range report.Candidates {
		q := c.Measured.Queries[0]
		fmt.Printf("%s: one row: %v, returned at most one: %v\n", c.Name, q.Seen <= 1, q.Returned <= 1)
	}
	fmt.Println("not as expected:", report.Unmet())
	// Output:
	// truck first: one row: true, returned at most one: true
	// time first: one row: false, returned at most one: true
	// not as expected: []
}

// A misspelt field and a missing unit, with their lines.
func ExampleParse() {
	_, err := lab.Parse([]byte(`
duration: 60
datasets:
  - {name: positions, fields: [truck], entities: 100, evry: 1s, every: 1s}
candidates:
  - key: tenant#truck#~time
`))
	fmt.Println(err)
	// Output:
	// line 2: duration is "60"; want a number with a unit: ms, s, m, h or d, such as 90s or 24h
	// line 4: datasets[0].evry is not a field; did you mean every?; want bursts, bytes, day, entities, every, fields, keep, late, name, skew
}
