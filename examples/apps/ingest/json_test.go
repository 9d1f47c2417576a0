package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// reply is the response to a request over a connection.
type reply struct {
	status int
	header http.Header
	text   string
	answerJSON
}

// listen serves the rig on a port of its own, and returns its URL.
func (r *rig) listen(t testing.TB) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := r.http()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(lis)
	}()
	t.Cleanup(func() {
		_ = srv.Close()
		<-done
	})
	return "http://" + lis.Addr().String()
}

// client follows no redirect and keeps no connection.
var client = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// sendJSON posts a body with acme's token, after the changes.
func sendJSON(t testing.TB, url, body string, change ...func(*http.Request)) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret")
	for _, f := range change {
		f(req)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := reply{status: resp.StatusCode, header: resp.Header, text: string(text)}
	if err := json.Unmarshal(text, &got.answerJSON); err != nil {
		t.Errorf("the response %q is not JSON: %v", text, err)
	}
	return got
}

// want fails the test if a response is another one, or lacks a text.
func (got reply) want(t *testing.T, what string, status, stored, refused int, texts ...string) {
	t.Helper()
	if got.status != status || got.Stored != stored || got.RefusedCount != refused {
		t.Errorf("%s: status %d with %d stored and %d refused, want %d, %d and %d: %s", what, got.status, got.Stored, got.RefusedCount, status, stored, refused, got.text)
	}
	for _, text := range texts {
		if !strings.Contains(got.text, text) {
			t.Errorf("%s: the response %s lacks %q", what, got.text, text)
		}
	}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func noToken(r *http.Request) { r.Header.Del("Authorization") }

func ndjson(r *http.Request) { r.Header.Set("Content-Type", "application/x-ndjson") }

// sensor is a message of a device.
func sensor(device string, temp float64) string {
	return fmt.Sprintf(`{"device":%q,"time":1767225600,"temp":%g}`, device, temp)
}

// counted returns what a route with count=1h has counted for an entity of acme.
func (r *rig) counted(t *testing.T, dataset, device string) int64 {
	t.Helper()
	counts := rollup.MustDefine[codec.Record](inbound.CountName, window.Every(time.Hour), nil, rollup.Options{Mode: rollup.ByMessage, Remember: 24 * time.Hour, MaxMessages: 100_000})
	schema := tsdb.MustDefine(dataset, tsdb.Key("device"), codec.Records(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{counts}})
	b, err := rollup.For(counts, schema.For(r.in.sink.Store, acme)).Total(t.Context(), tsdb.NewEntity(device), tsdb.Between(start, start.Add(time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	return b.Points
}

// tenantRoutes take the tenant from the path, and for one path from the route.
var tenantRoutes = []string{
	"-route", "v1/+tenant/+device dataset=telemetry key=device time=time,auto",
	"-route", "acme dataset=telemetry key=device time=time,auto tenant=acme",
	"-route", "free/+dataset/+device key=device time=arrival",
	"-route", "views dataset=views key=device time=time,auto count=1h id=id",
	"-route", "lines format=line key=device time=ns",
}

// TestJSONWithoutRoutes: the path is the dataset, and its key that of -key.
func TestJSONWithoutRoutes(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host", "-key", "*=device")
	url := r.listen(t)
	form := header("Content-Type", "application/x-www-form-urlencoded") // as curl -d sends it
	sendJSON(t, url+"/json/telemetry", sensor("t1", 21.5), form).want(t, "an object", 200, 1, 0, `{"stored":1,"refused":[],"refusedCount":0}`)
	r.stored(t, "telemetry", acme, start, "{temp=21.5}", "t1")
	sendJSON(t, url+"/json/telemetry", `{"device":"t1","time":1767225600000,"hum":40}`).want(t, "in milliseconds", 200, 1, 0)
	r.stored(t, "telemetry", acme, start, "{hum=40i temp=21.5}", "t1")
	sendJSON(t, url+"/json/cpu", `{"host":"a","time":1767225600,"x":1}`).want(t, "a dataset of -key", 200, 1, 0)
	r.stored(t, "cpu", acme, start, "{x=1i}", "a")
	sendJSON(t, url+"/json/cpu", sensor("t1", 1)).want(t, "without the key", 400, 0, 1, "it lacks the key tag host")
	sendJSON(t, url+"/json/a/b", sensor("t1", 1)).want(t, "two levels", 404, 0, 0, "no route matches the path")
	sendJSON(t, url+"/json/telemetry", `{"device":"t1","temp":1}`).want(t, "no time", 400, 0, 1, "time")

	only := newRig(t, ample, "-key", "cpu=host")
	sendJSON(t, only.listen(t)+"/json/telemetry", sensor("t1", 1)).want(t, "no rule for others", 400, 0, 1, `no -key names the measurement`)
	// With only * as the key two devices are two series.
	any := newRig(t, ample, "-key", "*=*")
	sendJSON(t, any.listen(t)+"/json/telemetry", "["+sensor("t1", 1)+","+sensor("t2", 2)+"]").want(t, "any key", 200, 2, 0)
	any.stored(t, "telemetry", acme, start, "{temp=1i}", "device=t1")
	any.stored(t, "telemetry", acme, start, "{temp=2i}", "device=t2")
}

// TestJSONMessages: each message of a request has an outcome of its own.
func TestJSONMessages(t *testing.T) {
	r := newRig(t, ample, "-key", "*=device")
	url := r.listen(t) + "/json/telemetry"
	good := func(i int) string { return sensor(fmt.Sprint("t", i), float64(i)) }
	for what, tt := range map[string]struct {
		body            string
		stored, refused int
		change          func(*http.Request)
		texts           []string
	}{
		"nothing":                      {" \n", 0, 0, nil, nil},
		"an empty array":               {"[ ]", 0, 0, nil, nil},
		"a byte order mark":            {"\ufeff" + good(1), 1, 0, nil, nil},
		"an array":                     {"[" + good(1) + " ,\n" + good(2) + "]", 2, 0, nil, nil},
		"a pretty object":              {"{\n\"device\": \"t1\",\n\"time\": 1767225600,\n\"temp\": 1\n}\n", 1, 0, nil, nil},
		"a bad element":                {"[" + good(1) + `,{"device":},` + good(2) + "]", 2, 1, nil, []string{`"message":2,"reason":"it cannot be parsed","error":"the message is not JSON"`}},
		"empty elements":               {"[" + good(1) + `,,` + good(2) + ",]", 2, 2, nil, []string{`"message":2`, `"message":4`}},
		"text behind":                  {"[" + good(1) + `] x`, 1, 1, nil, []string{`"message":2`}},
		"a cut array":                  {"[" + good(1) + "," + good(2), 2, 1, nil, []string{`"message":3`, "the array does not end"}},
		"brackets in texts":            {`[{"device":"t]}\"","time":1767225600,"a,b":"[{"},` + good(2) + "]", 2, 0, nil, nil},
		"lines":                        {good(1) + "\r\n\n" + good(2) + "\n", 2, 0, ndjson, nil},
		"lines of no type":             {good(1) + "\n" + good(2), 2, 0, nil, nil},
		"a bad line in the middle":     {good(1) + "\n{\"device\":\"t9\n" + good(2), 2, 1, ndjson, []string{`"message":2`}},
		"the same, of no type":         {good(1) + "\n{\"device\":\"t9\n" + good(2), 2, 1, nil, []string{`"message":2`}},
		"a line that is no JSON":       {"nonsense\n" + good(2), 1, 1, header("Content-Type", "application/jsonl; charset=utf-8"), []string{`"message":1`}},
		"a line with an array":         {"[" + good(1) + "," + good(2) + "]\n" + good(3), 2, 0, ndjson, nil},
		"a message without a value":    {`[{"device":"t1","time":1767225600,"temp":null},` + good(2) + "]", 1, 0, nil, nil},
		"a message that is too large":  {"[" + good(1) + `,{"x":"` + strings.Repeat("y", maxLine) + `"}]`, 1, 1, nil, []string{"want at most 65536"}},
		"a time in the future":         {`[` + good(1) + `,{"device":"t1","time":"2999-01-01T00:00:00Z","temp":1}]`, 1, 1, nil, []string{"its time is not accepted"}},
		"twelve bad ones":              {strings.Repeat("{\n", 12), 0, 12, ndjson, []string{`"message":10,`}},
		"two messages for one place":   {`[{"device":"m","time":1767225600,"a":1},{"device":"m","time":1767225600,"b":2}]`, 2, 0, nil, nil},
		"the second of one is invalid": {`[{"device":"n","time":1767225600,"a":1},{"device":"n","time":1767225600,"b":"` + strings.Repeat("y", 9000) + `"}]`, 1, 1, nil, []string{"at most 8192 bytes"}},
	} {
		status := 200
		if tt.refused > 0 {
			status = 400
		}
		if tt.change == nil {
			tt.change = header("Content-Type", "application/json")
		}
		got := sendJSON(t, url, tt.body, tt.change)
		got.want(t, what, status, tt.stored, tt.refused, tt.texts...)
		if len(got.Refused) != min(tt.refused, shown) {
			t.Errorf("%s: %d refused messages are listed", what, len(got.Refused))
		}
	}
	r.stored(t, "telemetry", acme, start, "{temp=2i}", "t2")
	r.stored(t, "telemetry", acme, start, "{a=1i b=2i}", "m")
	r.stored(t, "telemetry", acme, start, "{a=1i}", "n")
	r.unusedMemory(t)
	sendJSON(t, url, strings.Repeat(good(1)+"\n", manyMessages)).want(t, "10,000 messages", 200, manyMessages, 0)
	sendJSON(t, url, strings.Repeat("1\n", manyMessages+1)).want(t, "10,001 lines", 413, 0, 0, "more than 10000 messages")
	sendJSON(t, url, "["+strings.Repeat("{},", manyMessages)+"{}]").want(t, "10,001 elements", 413, 0, 0, "more than 10000 messages")
}

// TestJSONRoutes: the path of a request is the topic of the routes.
func TestJSONRoutes(t *testing.T) {
	r := newRig(t, ample, append([]string{"-key", "*=device"}, tenantRoutes...)...)
	url := r.listen(t) + "/json/"
	sendJSON(t, url+"v1/acme/t%201", `{"time":1767225600,"temp":1}`).want(t, "the device in the path", 200, 1, 0)
	r.stored(t, "telemetry", acme, start, "{temp=1i}", "t 1")
	sendJSON(t, url+"acme", sensor("t2", 2)).want(t, "a fixed path", 200, 1, 0)
	r.stored(t, "telemetry", acme, start, "{temp=2i}", "t2")
	sendJSON(t, url+"free/state/lamp", "on").want(t, "a text", 200, 1, 0)
	sendJSON(t, url+"free/state/lamp", "[1,2]").want(t, "an array without objects", 400, 0, 1, "it is an array")
	// Messages without a time are points of their own.
	sendJSON(t, url+"free/events/door", `[{"n":1},{"n":2},{"n":3}]`).want(t, "arrivals", 200, 3, 0)
	n := 0
	for _, err := range r.repository(t, "events", acme).Range(t.Context(), tsdb.NewEntity("door"), tsdb.AllTime()) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 3 {
		t.Errorf("3 messages without a time are %d points", n)
	}
	// A route that does not merge stores the last message of a place, whatever the batch.
	sendJSON(t, url+"v1/acme/t3", `[{"time":1767225600,"a":1},{"time":1767225600,"b":2}]`).want(t, "no merge", 200, 2, 0)
	r.stored(t, "telemetry", acme, start, "{b=2i}", "t3")
	// A message of a count counts once.
	views := `[{"device":"d","time":1767225600,"id":"1"},{"device":"d","time":1767225600,"id":"2"},{"device":"d","time":1767225600}]`
	for range 2 {
		sendJSON(t, url+"views", views).want(t, "counted", 400, 2, 1, `"message":3`)
	}
	if got := r.counted(t, "views", "d"); got != 2 {
		t.Errorf("2 messages that were sent twice count %d", got)
	}
	sendJSON(t, url+"lines", "cpu,device=a x=1").want(t, "a route of line protocol", 415, 0, 0, "/api/v2/write")
	sendJSON(t, url+"v2/acme/t1", "{}").want(t, "no route", 404, 0, 0, `no route matches the path \"v2/acme/t1\"`)
	want(t, "a line for a dataset that does not merge", r.post(v2, "telemetry,device=a x=1"), 400, "does not say merge")
}

// TestHooks: the routes of hooks.txt store messages in the form of The Things Stack, ChirpStack, Traccar and Shelly.
func TestHooks(t *testing.T) {
	r := newRig(t, ample, "-routes", "hooks.txt")
	url := r.listen(t) + "/json/"
	for _, tt := range []struct{ path, body, dataset, key, stored string }{
		{
			"ttn/acme", `{"end_device_ids":{"device_id":"barn"},"received_at":"2026-01-01T00:00:00Z","uplink_message":{"f_port":2,"decoded_payload":{"temp":4.5}}}`,
			"ttn", "barn", "{uplink_message.decoded_payload.temp=4.5 uplink_message.f_port=2i}",
		},
		{
			"chirpstack/acme?event=up", `{"time":"2026-01-01T00:00:00.000000000+00:00","deviceInfo":{"devEui":"0101010101010101"},"fPort":1,"object":{"temp":4.5}}`,
			"chirpstack", "0101010101010101", "{fPort=1i object.temp=4.5}",
		},
		{
			"traccar/acme", `{"position":{"fixTime":"2026-01-01T00:00:00.000+00:00","latitude":1.5,"network":null},"device":{"uniqueId":"42"}}`,
			"traccar", "42", "{position.latitude=1.5}",
		},
	} {
		sendJSON(t, url+tt.path, tt.body).want(t, tt.path, 200, 1, 0)
		r.stored(t, tt.dataset, acme, start, tt.stored, tt.key)
	}
	sendJSON(t, url+"shelly/acme/plug", `{"output":true,"apower":12.5}`).want(t, "shelly", 200, 1, 0)
}

// TestStoreLines: store lines of a pattern file are for line protocol, and leave JSON as it is without routes.
func TestStoreLines(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host", "-route", "store node_* in node by measurement host")
	want(t, "a line", r.post(v2, "node_load1,host=a value=1 1767225600000000000\ncpu,host=a x=1 1767225600000000000"), 204)
	r.stored(t, "node", acme, start, "{value=1}", "node_load1", "a")
	sendJSON(t, r.listen(t)+"/json/cpu", `{"host":"a","time":1767225600,"y":2}`).want(t, "JSON", 200, 1, 0)
	r.stored(t, "cpu", acme, start, "{x=1 y=2i}", "a")
}

// TestJSONPaths: a path that a proxy would take for another one is refused, and never redirected.
func TestJSONPaths(t *testing.T) {
	r := newRig(t, ample, append(tenantRoutes, "-route", "# dataset=telemetry key=device time=time,auto")...)
	url := r.listen(t)
	for _, path := range []string{
		"/json/", "/json//", "/json/a/", "/json//a", "/json/a//b", "/json/v1%2Facme/t1", "/json/v1/acme%2ft1", "/json/v1/acme/t%5C1",
		"/json/..", "/json/%2e%2e/write", "/json/v1/../acme", "/json/./acme", "/json/v1/acme/t%00", "/json/v1/acme/t%0a", "/json/v1/acme/%ff",
	} {
		req := func(r *http.Request) { r.URL.Opaque = "//" + r.URL.Host + path }
		sendJSON(t, url, sensor("t1", 1), req).want(t, path, 400, 0, 0, "the path")
	}
	sendJSON(t, url+"/json/v1/acme/t%C3%BC+%23", `{"time":1767225600,"temp":1}`).want(t, "any other text", 200, 1, 0)
	got := sendJSON(t, url+"/json/acme", "", func(r *http.Request) { r.Method = http.MethodGet })
	got.want(t, "GET", 405, 0, 0)
	if got.header.Get("Allow") != http.MethodPost {
		t.Errorf("405 allows %q", got.header.Get("Allow"))
	}
}

// TestJSONIsolation: a token stores its tenant's points only, whatever path, payload or header says.
func TestJSONIsolation(t *testing.T) {
	r := newRig(t, ample, tenantRoutes...)
	url := r.listen(t) + "/json/"
	body := `{"time":1767225600,"temp":1}`
	for _, path := range []string{"v1/acme2/t1", "v1/ACME/t1", "v1/acme%20/t1"} {
		sendJSON(t, url+path, body).want(t, path, 403, 0, 0, "tenant")
	}
	sendJSON(t, url+"acme", sensor("t1", 1), header("Authorization", "Bearer other")).want(t, "the route's tenant", 403, 0, 0, "tenant")
	sendJSON(t, url+"v1/acme/t1", `{"time":1767225600,"temp":1,"tenant":"acme2"}`).want(t, "the payload's tenant", 400, 0, 1, "tenant")
	sendJSON(t, url+"v1/acme/t1", body, header("X-Tenant", "acme2")).want(t, "its own", 200, 1, 0)
	r.stored(t, "telemetry", acme, start, "{temp=1i}", "t1")
	r.stored(t, "telemetry", tenantOf("acme2"), start, "", "t1")
	sendJSON(t, url+"v1/acme2/t1", body, header("Authorization", "Token other")).want(t, "the other one's", 200, 1, 0)
	r.stored(t, "telemetry", tenantOf("acme2"), start, "{temp=1i}", "t1")
}

// TestJSONTokens: a request has one token, in one of three places.
func TestJSONTokens(t *testing.T) {
	args := []string{"-key", "*=device"}
	url := newRig(t, ample, args...).listen(t) + "/json/telemetry"
	open := newRig(t, ample, append(args, "-token-in-query")...).listen(t) + "/json/telemetry"
	token := func(text string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Add(tokenHeader, text) }
	}
	basic := func(r *http.Request) { r.SetBasicAuth("any", "secret") }
	for what, tt := range map[string]struct {
		url    string
		change []func(*http.Request)
		status int
	}{
		"Bearer":                     {url, nil, 200},
		"Basic":                      {url, []func(*http.Request){basic}, 200},
		"the header":                 {url, []func(*http.Request){noToken, token("secret")}, 200},
		"the parameter":              {open + "?token=secret", []func(*http.Request){noToken}, 200},
		"none":                       {url, []func(*http.Request){noToken}, 401},
		"a wrong header":             {url, []func(*http.Request){noToken, token("x")}, 401},
		"an empty header":            {url, []func(*http.Request){noToken, token("")}, 401},
		"a parameter that is closed": {url + "?token=secret", []func(*http.Request){noToken}, 401},
		"p of version 1":             {open + "?p=secret", []func(*http.Request){noToken}, 401},
		"two headers":                {url, []func(*http.Request){token("secret")}, 401},
		"one header twice":           {url, []func(*http.Request){noToken, token("secret"), token("secret")}, 401},
		"Authorization twice":        {url, []func(*http.Request){func(r *http.Request) { r.Header.Add("Authorization", "Bearer secret") }}, 401},
		"a header and a parameter":   {open + "?token=secret", []func(*http.Request){noToken, token("secret")}, 401},
		"two parameters":             {open + "?token=secret&token=other", []func(*http.Request){noToken}, 401},
		"both, one wrong":            {open + "?token=x", nil, 401},
	} {
		stored := 0
		if tt.status == 200 {
			stored = 1
		}
		got := sendJSON(t, tt.url, sensor("t1", 1), tt.change...)
		got.want(t, what, tt.status, stored, 0)
		if tt.status == 401 && (got.header.Get("WWW-Authenticate") == "" || strings.Contains(got.text, "secret")) {
			t.Errorf("%s: %v, %s", what, got.header, got.text)
		}
	}
}

// TestJSONBodies: gzip and zstd are read, and bombs and broken bodies refused before anything is stored.
func TestJSONBodies(t *testing.T) {
	small := ample
	small.Body = 4096
	r := newRig(t, small, "-key", "*=device")
	url := r.listen(t) + "/json/telemetry"
	good := sensor("t1", 1)
	sendJSON(t, url, packed(good), isGzip).want(t, "gzip", 200, 1, 0)
	sendJSON(t, url, zstandard(good), isZstd).want(t, "zstd", 200, 1, 0)
	many := strings.Repeat(sensor("t2", 2)+"\n", 1000)
	for what, tt := range map[string]struct {
		body   string
		status int
		change func(*http.Request)
	}{
		"too large":      {many, 413, ndjson},
		"a gzip bomb":    {packed(many), 413, isGzip},
		"a zstd bomb":    {zstandard(many, zstd.WithWindowSize(1<<10)), 413, isZstd},
		"a wide window":  {zstandard(strings.Repeat(many, 10)), 413, isZstd},
		"no gzip":        {good, 400, isGzip},
		"no zstd":        {good, 400, isZstd},
		"cut gzip":       {packed(good)[:20], 400, isGzip},
		"cut zstd":       {zstandard(good)[:20], 400, isZstd},
		"other encoding": {good, 415, header("Content-Encoding", "br")},
		"two encodings":  {good, 415, header("Content-Encoding", "gzip, zstd")},
	} {
		sendJSON(t, url, tt.body, tt.change).want(t, what, tt.status, 0, 0)
		r.unusedMemory(t)
	}
	r.stored(t, "telemetry", acme, start, "", "t2")
	sendJSON(t, url+"?consistent=perhaps", good).want(t, "consistent", 400, 0, 0, "consistent")
}

// TestJSONLimits: a request over a limit is sent again if that helps, and otherwise not.
func TestJSONLimits(t *testing.T) {
	limits := write(t, `{"overrides":{"acme":{"points_per_second":1,"points_burst":5},"acme2":{"entities":1}}}`)
	r := newRig(t, ample, "-limits", limits, "-key", "*=device")
	url := r.listen(t) + "/json/telemetry"
	sendJSON(t, url, strings.Repeat(sensor("t1", 1)+"\n", 100)).want(t, "100 messages for one point", 200, 100, 0)
	var six []string
	for i := range 6 {
		six = append(six, sensor(fmt.Sprint("s", i), 1))
	}
	sendJSON(t, url, strings.Join(six, "\n")).want(t, "more than the burst", 413, 0, 0, "send smaller requests")
	got := sendJSON(t, url, strings.Join(six[:5], "\n"))
	got.want(t, "over the rate", 429, 0, 0, "send all of it again")
	if got.header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
	sendJSON(t, url, six[0]+"\n"+six[1], header("Authorization", "Bearer other")).want(t, "over the entities", 400, 1, 1, "it is over a limit of the tenant")
}

// TestJSONOutage: while points may be missing the sender is asked to send again, whatever else is wrong, and then
// nothing is doubled.
func TestJSONOutage(t *testing.T) {
	l := ample
	l.Timeout = 300 * time.Millisecond
	r := newRig(t, l, "-key", "*=device", "-key", "telemetry=device")
	url := r.listen(t) + "/json/telemetry"
	body := "[" + sensor("t1", 1) + `,{"device":},` + sensor("t2", 2) + "]"
	end := r.conn.Outage()
	got := sendJSON(t, url, body)
	got.want(t, "in an outage", 503, 0, 0)
	if got.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	end()
	for deadline := time.Now().Add(10 * time.Second); got.status == 503 && time.Now().Before(deadline); {
		got = sendJSON(t, url, body)
	}
	got.want(t, "after the outage", 400, 2, 1)
	sendJSON(t, url, body).want(t, "again", 400, 2, 1)
	for _, device := range []string{"t1", "t2"} {
		n := 0
		for range r.repository(t, "telemetry", acme).Range(t.Context(), tsdb.NewEntity(device), tsdb.AllTime()) {
			n++
		}
		if n != 1 {
			t.Errorf("%s has %d points, want 1", device, n)
		}
	}
}

// TestJSONJournal: with a journal a message is acknowledged once it is on disk, and readable with consistent=1.
func TestJSONJournal(t *testing.T) {
	r := newRig(t, ample, "-key", "*=device", "-key", "telemetry=device", "-journal", t.TempDir())
	url := r.listen(t) + "/json/telemetry"
	end := r.conn.Outage()
	sendJSON(t, url, sensor("t1", 1)).want(t, "in an outage", 200, 1, 0)
	end()
	sendJSON(t, url+"?consistent=1", sensor("t2", 2)).want(t, "consistent", 200, 1, 0)
	r.stored(t, "telemetry", acme, start, "{temp=1i}", "t1")
	r.stored(t, "telemetry", acme, start, "{temp=2i}", "t2")
	if _, _, rep := r.sum(); rep.lines != 2 || rep.stored != 2 || rep.journaled != 2 || rep.points != 2 {
		t.Errorf("the report is %+v", rep)
	}
}

// TestJSONConsistentInAnOutage: if the wait ends before the points can be read, the answer says that the journal has
// them.
func TestJSONConsistentInAnOutage(t *testing.T) {
	l := ample
	l.Timeout = 2 * time.Second
	r := newRig(t, l, "-key", "telemetry=device", "-journal", t.TempDir())
	end := r.conn.Outage()
	sendJSON(t, r.listen(t)+"/json/telemetry?consistent=1", sensor("t1", 1)).want(t, "consistent", 202, 0, 0, "in the journal")
	end()
	if err := r.in.sink.Writer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.stored(t, "telemetry", acme, start, "{temp=1i}", "t1")
}

// TestJSONTooManyRequests: a request that arrives while all slots are used is asked to retry.
func TestJSONTooManyRequests(t *testing.T) {
	r := newRig(t, app.Bounds{Body: 1 << 20, Requests: 1, Timeout: 30 * time.Second}, "-key", "*=device")
	if !r.slots.Take(acme, 1) {
		t.Fatal("no slot")
	}
	url := r.listen(t) + "/json/telemetry"
	sendJSON(t, url, sensor("t1", 1)).want(t, "without a slot", 503, 0, 0, "too many requests")
	r.slots.Return(acme, 1)
	sendJSON(t, url, sensor("t1", 1)).want(t, "with a slot", 200, 1, 0)
}
