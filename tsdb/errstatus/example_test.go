package errstatus_test

import (
	"fmt"
	"net/http/httptest"
	"time"

	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/errstatus"
)

func ExampleHTTP() {
	for _, err := range []error{
		fmt.Errorf("%w: entity berlin/roof-7", tsdb.ErrNotFound),
		&limit.Error{ID: limit.PointsPerSecond, RetryAfter: 1500 * time.Millisecond},
	} {
		w := httptest.NewRecorder()
		errstatus.HTTP(err).Write(w, httptest.NewRequest("GET", "/latest", nil))
		fmt.Print(w.Code, " ", w.Header().Get("Retry-After"), " ", w.Body)
	}
	// Output:
	// 404  {"type":"about:blank","title":"Not Found","status":404,"detail":"There is no such point."}
	// 429 2 {"type":"about:blank","title":"Too Many Requests","status":429,"detail":"The tenant is over its limit points_per_second."}
}

func ExampleResponse() {
	r := errstatus.HTTP(tsdb.ErrClosed)
	fmt.Println(r.Status, r.RetryAfter, r.Detail)
	// Output: 503 1s The store is not available now. The same request may be sent again.
}

func ExampleGRPC() {
	err := errstatus.GRPC(fmt.Errorf("%w: entity berlin/roof-7", tsdb.ErrNotFound))
	fmt.Println(status.Code(err), status.Convert(err).Message())
	// Output: NotFound There is no such point.
}
