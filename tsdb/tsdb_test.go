package tsdb_test

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

func TestMain(m *testing.M) {
	if os.Getenv(emulatorChild) != "" {
		os.Exit(m.Run()) // the official client leaks in emulator mode
	}
	// The official client, if it dials itself, asks the machine's metadata server once, and keeps that connection.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// overTCP reports whether the stores of this run use the loopback interface.
func overTCP() bool { return os.Getenv("TIDEMARK_TEST_TCP") != "" }

// bubble runs a test with a simulated clock; over TCP, where synctest does not work, with the real one.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if overTCP() {
		f(t)
		return
	}
	synctest.Test(t, f)
}

// longBubble is bubble for a test that needs exact times or would take minutes. It is skipped over TCP.
func longBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if overTCP() {
		t.Skip("needs a simulated clock; it runs in process")
	}
	synctest.Test(t, f)
}

// parallelIfSlow runs a test that mostly waits in parallel with others, if it waits on the real clock.
func parallelIfSlow(t *testing.T) {
	t.Helper()
	if overTCP() {
		t.Parallel()
	}
}

// sampling reports whether tests run under the race detector or over TCP, where they take ten times as long. Large
// matrices are sampled there; the plain run covers them fully.
func sampling() bool { return testkit.Raced || overTCP() }

// some returns every fourth case, starting at an offset, if tests are slow, else all cases.
func some[E any](offset int, cases []E) []E {
	if !sampling() {
		return cases
	}
	var out []E
	for i := offset % 4; i < len(cases); i += 4 {
		out = append(out, cases[i])
	}
	return out
}

// faultTimeout is the timeout of writes for tests of lasting faults.
func faultTimeout() time.Duration {
	if overTCP() {
		return time.Second
	}
	return 10 * time.Second
}

type reading struct {
	TempC float64 `json:"temp_c"`
}

var (
	acme  = tenant.MustParse("acme")
	roof  = tsdb.NewEntity("berlin", "roof-7")
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d90   = gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)}
)

// readings returns a schema of readings by site and device.
func readings(t testing.TB, opts tsdb.SchemaOptions) *tsdb.Schema[reading] {
	t.Helper()
	s, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.JSON[reading](), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type clock = testkit.Clock

// rows returns all rows of a table except the store's own, and the lists of fields, which are written in the
// background.
func rows(t testing.TB, table *bigtable.Table) map[string]bigtable.Row {
	t.Helper()
	out := map[string]bigtable.Row{}
	err := table.ReadRows(context.Background(), bigtable.InfiniteRange("\""), func(r bigtable.Row) bool {
		if !rowkey.IsFieldsRow(r.Key()) {
			out[r.Key()] = r
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func must[V any](t testing.TB) func(v V, err error) V {
	return func(v V, err error) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
