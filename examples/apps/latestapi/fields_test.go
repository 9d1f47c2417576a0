package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
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
	a.get("/v1/weather/fields?site=berlin&device=roof-7&at=0001-01-01T00:00:00Z").wantProblem(t, noPoint)
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

// TestFieldsOfAllDoors: an entity, a list and a group have the same newest fields, of the tenant who asks, as of a
// time, and with the same end of a search that is cut. A null is no value, and a point that cannot be read is reported.
func TestFieldsOfAllDoors(t *testing.T) {
	a := newAPI(t)
	for i, v := range []Reading{{TempC: num(19), Humidity: num(40)}, {TempC: num(20.5)}, {Humidity: num(45)}} {
		at := noon.Add(time.Duration(i-5) * time.Minute)
		if err := weather.For(a.store, acme).Put(t.Context(), roof, at, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := weather.For(a.store, acme2).Put(t.Context(), roof, noon.Add(-time.Minute), Reading{TempC: num(-7)}); err != nil {
		t.Fatal(err)
	}
	a.payload(roof, noon.Add(-2*time.Minute), `{"temp_c":null}`)
	a.payload(roof, noon.Add(-time.Minute), `{"temp_c":`)
	const unreadable = `,"unreadable":["2026-06-01T11:59:00Z"]`
	const temp, humidity = `"temp_c":"2026-06-01T11:56:00Z"`, `"humidity":"2026-06-01T11:57:00Z"`
	for query, want := range map[string]string{
		"":                                     `"value":{"temp_c":20.5,"humidity":45},"times":{` + humidity + "," + temp + "}" + unreadable,
		"&at=2026-06-01T11:58:30Z":             `"value":{"temp_c":20.5,"humidity":45},"times":{` + humidity + "," + temp + "}",
		"&at=2026-06-01T11:56:59Z":             `"value":{"temp_c":20.5,"humidity":40},"times":{"humidity":"2026-06-01T11:55:00Z",` + temp + "}",
		"&points=3":                            `"value":{"humidity":45},"times":{` + humidity + `},"missing":["temp_c"],"back":"2026-06-01T11:57:00Z"` + unreadable,
		"&points=2":                            `"times":{},"missing":["temp_c","humidity"],"back":"2026-06-01T11:58:00Z"` + unreadable,
		"&points=1&at=2026-06-01T11:56:59.99Z": `"value":{"temp_c":20.5},"times":{` + temp + `},"missing":["humidity"],"back":"2026-06-01T11:56:00Z"`,
	} {
		a.fieldsOfAllDoors(query, want)
	}
	a.fieldsOfAllDoors("", `"value":{"temp_c":-7},"times":{"temp_c":"2026-06-01T11:59:00Z"},"missing":["humidity"]`, "Authorization: Bearer secret=2")
}

// fieldsOfAllDoors checks the newest fields of roof, the only entity.
func (a *api) fieldsOfAllDoors(query, want string, headers ...string) {
	a.t.Helper()
	one := `"key":{"site":"berlin","device":"roof-7"},` + want
	a.get("/v1/weather/fields?site=berlin&device=roof-7"+query, headers...).want(a.t, 200, "{"+one+"}")
	a.get("/v1/weather/fields?site=berlin"+query, headers...).want(a.t, 200, `{"entities":[{`+one+`}],"more":false}`)
	a.get("/v1/weather/fields?site=berlin"+query, append(headers, "Accept: "+asLines)...).want(a.t, 200, "{"+one+"}\n"+`{"end":true}`)
	a.do(http.MethodPost, "/v1/weather/fields?"+query[min(1, len(query)):], `{"keys":[{"site":"berlin","device":"roof-7"}]}`, headers...).
		want(a.t, 200, `{"answers":[{"status":"found",`+one+`}],"complete":true}`)
}

// TestFieldsFail: entities that cannot be read in time are failures in a list, and the log has one line.
func TestFieldsFail(t *testing.T) {
	a := newAPI(t)
	cellar := tsdb.NewEntity("berlin", "cellar-1")
	a.put(roof, 20)
	a.put(cellar, 12)
	a.conn.Inject(tsdbtest.Fail(codes.ResourceExhausted).On(tsdbtest.ReadRows).Skip(1))
	got := a.do(http.MethodPost, "/v1/weather/fields", `{"keys":[{"site":"berlin","device":"roof-7"},{"site":"berlin","device":"cellar-1"}]}`)
	if n := strings.Count(got.body, `"status":"failed"`); got.StatusCode != 200 || n != 1 || !strings.Contains(got.body, `"complete":false`) || !strings.Contains(got.body, unavailable.name) {
		t.Errorf("%d %s, want one failure", got.StatusCode, got.body)
	}
	if n := strings.Count(a.log.String(), "answered in part"); n != 1 {
		t.Errorf("%d lines in the log, want 1:\n%s", n, a.log)
	}
	a.get("/v1/weather/fields?site=berlin&device=roof-7").wantProblem(t, unavailable)
	a.get("/v1/weather/fields?site=berlin").wantProblem(t, unavailable)
}
