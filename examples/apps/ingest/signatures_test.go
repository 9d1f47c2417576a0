package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

const hub = "X-Hub-Signature-256"

func sign(secret, body string) []byte {
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write([]byte(body))
	return sum.Sum(nil)
}

// signed signs a request as GitHub does, and has no token.
func signed(secret, body string) func(*http.Request) {
	return func(r *http.Request) {
		noToken(r)
		r.Header.Set(hub, "sha256="+hex.EncodeToString(sign(secret, body)))
	}
}

func newSigned(t *testing.T) *rig {
	t.Helper()
	file := write(t, "acme X-Hub-Signature-256 whsec-acme\nacme X-Hub-Signature-256 whsec-older\nacme X-Shopify-Hmac-Sha256 shop\nacme2 X-Hub-Signature-256 whsec-acme2\n# a comment\n")
	return newRig(t, ample, append(tenantRoutes, "-signatures", file)...)
}

// TestSignatures: a webhook without a token is accepted if its body is signed with a secret of the route's tenant.
func TestSignatures(t *testing.T) {
	r := newSigned(t)
	url := r.listen(t) + "/json/v1/acme/"
	const body = `{"time":1767225600,"temp":1}`
	sendJSON(t, url+"hub", body, signed("whsec-acme", body)).want(t, "in hex with a prefix", 200, 1, 0)
	sendJSON(t, url+"older", body, signed("whsec-older", body)).want(t, "another secret of the tenant", 200, 1, 0)
	sendJSON(t, url+"bare", body, noToken, header(hub, strings.ToUpper(hex.EncodeToString(sign("whsec-acme", body))))).want(t, "in hex", 200, 1, 0)
	sendJSON(t, url+"shop", body, noToken, header("X-Shopify-Hmac-Sha256", base64.StdEncoding.EncodeToString(sign("shop", body)))).want(t, "in base64", 200, 1, 0)
	zipped := packed(body)
	sendJSON(t, url+"zipped", zipped, signed("whsec-acme", zipped), isGzip).want(t, "the body as it is sent", 200, 1, 0)
	for _, device := range []string{"hub", "older", "bare", "shop", "zipped"} {
		r.stored(t, "telemetry", acme, start, "{temp=1i}", device)
	}
	for range 3 { // a body that is sent again stores nothing new
		sendJSON(t, url+"hub", body, signed("whsec-acme", body)).want(t, "again", 200, 1, 0)
	}
	n := 0
	for range r.repository(t, "telemetry", acme).Range(t.Context(), tsdb.NewEntity("hub"), tsdb.AllTime()) {
		n++
	}
	if n != 1 {
		t.Errorf("a body that was sent four times is %d points", n)
	}
	fixed := strings.Replace(sensor("fixed", 1), "1.0", "1", 1)
	sendJSON(t, strings.TrimSuffix(url, "v1/acme/")+"acme", fixed, signed("whsec-acme", fixed)).want(t, "a route with tenant=", 200, 1, 0)
	r.unusedMemory(t)
}

// TestSignaturesRefused: every other request without a token gets 401, and stores nothing.
func TestSignaturesRefused(t *testing.T) {
	r := newSigned(t)
	url := r.listen(t) + "/json/"
	const body = `{"time":1767225600,"temp":1}`
	twice := func(r *http.Request) { r.Header.Add(hub, "sha256="+hex.EncodeToString(sign("whsec-acme", body))) }
	for what, tt := range map[string]struct {
		path   string
		body   string
		change []func(*http.Request)
	}{
		"nothing":                        {"v1/acme/t1", body, []func(*http.Request){noToken}},
		"a wrong secret":                 {"v1/acme/t1", body, []func(*http.Request){signed("whsec", body)}},
		"an empty secret":                {"v1/acme/t1", body, []func(*http.Request){signed("", body)}},
		"another tenant's secret":        {"v1/acme/t1", body, []func(*http.Request){signed("whsec-acme2", body)}},
		"its own, on another's path":     {"v1/acme2/t1", body, []func(*http.Request){signed("whsec-acme", body)}},
		"a tenant without a signature":   {"v1/globex/t1", body, []func(*http.Request){signed("whsec-acme", body)}},
		"another body":                   {"v1/acme/t1", strings.Replace(body, "1}", "2}", 1), []func(*http.Request){signed("whsec-acme", body)}},
		"a longer body":                  {"v1/acme/t1", body + " ", []func(*http.Request){signed("whsec-acme", body)}},
		"no body":                        {"v1/acme/t1", "", []func(*http.Request){signed("whsec-acme", body)}},
		"the unpacked body":              {"v1/acme/t1", packed(body), []func(*http.Request){signed("whsec-acme", body), isGzip}},
		"an empty header":                {"v1/acme/t1", body, []func(*http.Request){noToken, header(hub, "")}},
		"a prefix alone":                 {"v1/acme/t1", body, []func(*http.Request){noToken, header(hub, "sha256=")}},
		"a part":                         {"v1/acme/t1", body, []func(*http.Request){noToken, header(hub, hex.EncodeToString(sign("whsec-acme", body))[:32])}},
		"another header":                 {"v1/acme/t1", body, []func(*http.Request){noToken, header("X-Signature", hex.EncodeToString(sign("whsec-acme", body)))}},
		"the secret of another header":   {"v1/acme/t1", body, []func(*http.Request){signed("shop", body)}},
		"the header twice":               {"v1/acme/t1", body, []func(*http.Request){signed("whsec-acme", body), twice}},
		"a route without a tenant":       {"free/telemetry/t1", body, []func(*http.Request){signed("whsec-acme", body)}},
		"no route":                       {"nowhere/at/all/t1", body, []func(*http.Request){signed("whsec-acme", body)}},
		"a wrong token with a signature": {"v1/acme/t1", body, []func(*http.Request){signed("whsec-acme", body), header(tokenHeader, "x")}},
	} {
		got := sendJSON(t, url+tt.path, tt.body, tt.change...)
		got.want(t, what, 401, 0, 0)
		if strings.Contains(got.text, "whsec") || strings.Contains(got.text, "shop") {
			t.Errorf("%s: the response %s has a secret", what, got.text)
		}
		r.unusedMemory(t)
	}
	// A token decides alone: the signature is not looked at.
	sendJSON(t, url+"v1/acme/t9", body, header(hub, "sha256=00")).want(t, "a token with a wrong signature", 200, 1, 0)
	sendJSON(t, url+"v1/acme/t1", body, header("Authorization", "Bearer other"), header(hub, "sha256="+hex.EncodeToString(sign("whsec-acme", body)))).want(t, "another's token with a signature", 403, 0, 0)
	for _, id := range []tenant.ID{acme, tenantOf("acme2")} {
		r.stored(t, "telemetry", id, start, "", "t1")
	}
}

// TestSignaturesTakeNoMemory: bodies that nobody has verified leave the tenant's memory to it.
func TestSignaturesTakeNoMemory(t *testing.T) {
	r := newSigned(t)
	var nobody tenant.ID
	for r.memory.Take(nobody, 64<<10) { // as much as senders without a token can hold
	}
	url := r.listen(t) + "/json/v1/acme/t1"
	const body = `{"time":1767225600,"temp":1}`
	sendJSON(t, url, body, signed("whsec-acme", body)).want(t, "one more of them", 503, 0, 0)
	sendJSON(t, url, body).want(t, "a request with a token", 200, 1, 0)
}

// TestSignatureFile: an error names the line and what is wrong, and never shows a word of it.
func TestSignatureFile(t *testing.T) {
	args := append([]string{"-token", "x=acme"}, tenantRoutes...)
	for text, why := range map[string]string{
		"acme X-Signature s3cret\nacme X-Signature": "line 2: want TENANT HEADER SECRET",
		"acme X-Signature s3cret s3cret":            "want TENANT HEADER SECRET",
		"s3cret! X-Signature acme":                  "the first word is not the name of a tenant",
		"acme s3cret! X-Signature":                  "the second word is not the name of a header",
		"acme authorization s3cret":                 "that of a token",
		"acme x-tidemark-token s3cret":              "that of a token",
		"# nothing":                                 "no line has a signature",
	} {
		_, err := parse(append(args, "-signatures", write(t, text)), io.Discard)
		if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: error %v, want one with %q and without the words", text, err, why)
		}
	}
	file := write(t, "acme X-Signature s3cret")
	if _, err := parse(append(tenantRoutes, "-signatures", file), io.Discard); err != nil {
		t.Errorf("signatures without a token: %v", err)
	}
	if _, err := parse([]string{"-key", "*=device", "-signatures", file}, io.Discard); err == nil || !strings.Contains(err.Error(), "-route") {
		t.Errorf("signatures without a route: %v", err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := parse(append(args, "-signatures", file), io.Discard); err == nil || !strings.Contains(err.Error(), "every user may write it") {
		t.Errorf("a file that all may write: %v", err)
	}
}
