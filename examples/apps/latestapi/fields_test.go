package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// TestFields: an entity has the newest value of each field with its time, by itself, in a list and in a group, also as
// of a time; what is missing and how far back was looked is reported.
func TestFields(t *testing.T) {
	a := newAPI(t)
	put := func(e tsdb.Entity, minute int, v Reading) {
		t.Helper()
		if err := weather.For(a.store, acme).Put(t.Context(), e, noon.Add(time.Duration(minute-60)*time.Minute), v); err != nil {
			t.Fatal(err)
		}
	}
	put(roof, 0, Reading{TempC: num(20.5)})
	put(roof, 10, Reading{Humidity: num(45)})
	put(roof, 5, Reading{TempC: num(21)}) // late
	cellar := tsdb.NewEntity("berlin", "cellar-1")
	put(cellar, 0, Reading{TempC: num(12)})

	const one = `"key":{"site":"berlin","device":"roof-7"},"value":{"temp_c":21,"humidity":45},"times":{"humidity":"2026-06-01T11:10:00Z","temp_c":"2026-06-01T11:05:00Z"}`
	const two = `"key":{"site":"berlin","device":"cellar-1"},"value":{"temp_c":12},"times":{"temp_c":"2026-06-01T11:00:00Z"},"missing":["humidity"]`
	a.get("/v1/weather/fields?site=berlin&device=roof-7").want(t, 200, "{"+one+"}")
	a.get("/v1/weather/fields?site=berlin&device=cellar-1").want(t, 200, "{"+two+"}")
	a.get("/v1/weather/fields?site=berlin&device=roof-7&at=2026-06-01T11:04:00Z").want(t, 200,
		`{"key":{"site":"berlin","device":"roof-7"},"value":{"temp_c":20.5},"times":{"temp_c":"2026-06-01T11:00:00Z"},"missing":["humidity"]}`)
	a.get("/v1/weather/fields?site=berlin&device=roof-7&points=1").want(t, 200,
		`{"key":{"site":"berlin","device":"roof-7"},"value":{"humidity":45},"times":{"humidity":"2026-06-01T11:10:00Z"},"missing":["temp_c"],"back":"2026-06-01T11:10:00Z"}`)
	a.get("/v1/weather/fields?site=berlin&device=roof-9").wantProblem(t, noPoint)
	a.get("/v1/weather/fields?site=berlin&device=roof-7", "Authorization: Bearer secret=2").wantProblem(t, noPoint)
	a.get("/v1/weather/fields?site=berlin&device=roof-7&points=10001").wantProblem(t, invalidInput)

	a.get("/v1/weather/fields?site=berlin").want(t, 200, `{"entities":[{`+two+`},{`+one+`}],"more":false}`)
	a.get("/v1/weather/fields?limit=1").want(t, 200, `{"entities":[{`+two+`}],"more":true}`)
	a.get("/v1/weather/fields", "Accept: application/x-ndjson").want(t, 200, "{"+two+"}\n{"+one+"}\n"+`{"end":true}`)
	a.do(http.MethodPost, "/v1/weather/fields", `{"keys":[{"site":"berlin","device":"roof-7"},{"site":"berlin","device":"x"},{"site":"berlin"}]}`).want(t, 200,
		`{"answers":[{"status":"found",`+one+`},{"status":"missing","key":{"site":"berlin","device":"x"}},`+
			`{"status":"failed","key":{"site":"berlin"},"problem":{"type":"`+problemTypes+`invalid-input","title":"A parameter or a part of the body was refused",`+
			`"status":400,"detail":"device is missing; want a value: a key has site, device","field":"device","value":"missing","limit":"a value: a key has site, device"}}],"complete":false}`)
}
