package httptenant_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/httptenant"
)

func ExampleNew() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /whoami", func(w http.ResponseWriter, r *http.Request) {
		id, _ := tenant.FromContext(r.Context())
		fmt.Fprintln(w, "you are", id)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "well") })

	edge, err := httptenant.New(tenant.FromHeader("X-Tenant"), httptenant.Options{Public: httptenant.Paths("/healthz")})
	if err != nil {
		panic(err)
	}
	for _, ask := range []struct{ path, tenant string }{{"/whoami", "acme"}, {"/whoami", ""}, {"/healthz", ""}} {
		r := httptest.NewRequest(http.MethodGet, ask.path, nil)
		if ask.tenant != "" {
			r.Header.Set("X-Tenant", ask.tenant)
		}
		w := httptest.NewRecorder()
		edge(mux).ServeHTTP(w, r)
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 200 you are acme
	// 401 {"type":"about:blank","title":"Unauthorized","status":401,"detail":"The request has no credentials, or they are not valid."}
	// 200 well
}

// A server that has its own error pages.
func ExampleOptions() {
	edge, err := httptenant.New(tenant.FromHeader("X-Tenant"), httptenant.Options{
		Answer: func(w http.ResponseWriter, r *http.Request, err error) {
			status := http.StatusInternalServerError
			switch {
			case errors.Is(err, tenant.ErrUnauthenticated):
				status = http.StatusUnauthorized
				w.Header().Set("WWW-Authenticate", `Bearer realm="tidemark"`)
			case errors.Is(err, tenant.ErrForbidden):
				status = http.StatusForbidden
			}
			http.Error(w, "go away", status)
		},
	})
	if err != nil {
		panic(err)
	}
	w := httptest.NewRecorder()
	edge(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Print(w.Code, " ", w.Body)
	// Output: 401 go away
}
