package httptenant_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/httptenant"
)

func TestTransport(t *testing.T) {
	server := httptest.NewServer(edge(t, tenant.FromHeader("X-Tenant"), httptenant.Options{})(whoami))
	defer server.Close()
	acme := tenant.NewContext(context.Background(), tenant.MustParse("acme"))
	for name, tt := range map[string]struct {
		ctx    context.Context
		header string
		err    error
	}{
		"a tenant":      {acme, "X-Tenant", nil},
		"nobody":        {context.Background(), "X-Tenant", tenant.ErrNoCredentials},
		"the zero ID":   {tenant.NewContext(acme, tenant.ID{}), "X-Tenant", tenant.ErrNoCredentials},
		"without names": {acme, "", invalid.ErrHTTP},
	} {
		client := http.Client{Transport: &httptenant.Transport{Header: tt.header, Base: server.Client().Transport}}
		closed := &closing{Reader: strings.NewReader("x")}
		r, err := http.NewRequestWithContext(tt.ctx, http.MethodPost, server.URL, closed)
		if err != nil {
			t.Fatal(err)
		}
		r.Header["X-Tenant"] = []string{"globex", "initech"} // headers of an earlier request
		got, err := client.Do(r)
		if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%s: %v, want %v", name, err, tt.err)
		}
		if err == nil {
			if text := body(got); got.StatusCode != http.StatusOK || !strings.Contains(text, "acme") {
				t.Errorf("%s: %d %s", name, got.StatusCode, text)
			}
			_ = got.Body.Close()
		} else if !closed.done {
			t.Errorf("%s: the body was not closed", name)
		}
		if len(r.Header["X-Tenant"]) != 2 {
			t.Errorf("%s: the caller's request was changed", name)
		}
	}
}

// TestTransportMakesTheHeader: a request without any headers is sent with the tenant.
func TestTransportMakesTheHeader(t *testing.T) {
	server := httptest.NewServer(edge(t, tenant.FromHeader("X-Tenant"), httptenant.Options{})(whoami))
	defer server.Close()
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := (&http.Request{URL: to}).WithContext(tenant.NewContext(t.Context(), tenant.MustParse("acme")))
	got, err := (&httptenant.Transport{Header: "X-Tenant", Base: server.Client().Transport}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if text := body(got); !strings.Contains(text, "acme") || r.Header != nil {
		t.Errorf("%s, the caller's headers %v", text, r.Header)
	}
}

type closing struct {
	*strings.Reader
	done bool
}

func (c *closing) Close() error {
	c.done = true
	return nil
}

func ExampleTransport() {
	edge, err := httptenant.New(tenant.FromHeader("X-Tenant"), httptenant.Options{})
	if err != nil {
		panic(err)
	}
	next := httptest.NewServer(edge(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		id, _ := tenant.FromContext(r.Context())
		fmt.Println("for", id)
	})))
	defer next.Close()

	client := http.Client{Transport: &httptenant.Transport{Header: "X-Tenant"}}
	ctx := tenant.NewContext(context.Background(), tenant.MustParse("acme"))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, next.URL, nil)
	if err != nil {
		panic(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.StatusCode, answer.Body.Close())
	// Output:
	// for acme
	// 200 <nil>
}
