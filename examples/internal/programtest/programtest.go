// Package programtest runs the program of an example in a separate process, and checks what several programs have in
// common. Only tests import it.
package programtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

// Variable is the environment variable that makes RunMain run the program.
const Variable = "EXAMPLE_TEST_MAIN"

// RunMain runs the program and ends the process, if New has started it. TestMain calls it first.
func RunMain(program func()) {
	if os.Getenv(Variable) != "" {
		program()
		os.Exit(0)
	}
}

// New returns the program of the test as a separate process, in an empty folder and without variables that name a
// project, and its standard error.
func New(t testing.TB, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), Variable+"=1", "TIDEMARK_PROJECT=", "GOOGLE_CLOUD_PROJECT=", "TIDEMARK_CURSOR_KEYS=")
	cmd.Stderr = &stderr
	return cmd, &stderr
}

// CheckProfileLimits checks that a store that open opens with -profile-limits applies the limits in tenants' profiles,
// and that one without the flag does not.
func CheckProfileLimits(t *testing.T, open func(flags ...string) (*tsdb.Store, error)) {
	for most, flags := range map[int][]string{3: {}, 1: {"-profile-limits"}} {
		store, err := open(flags...)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		s := tsdb.MustDefine("notes", tsdb.Key("device"), codec.String(), tsdb.SchemaOptions{})
		if err := store.Ensure(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		id := tenant.MustParse("acme")
		if _, err := tenants.Onboard(t.Context(), store, id, tenants.Profile{Limits: json.RawMessage(`{"entities": 1}`)}, tenants.OnboardOptions{}); err != nil {
			t.Fatal(err)
		}
		stored := 0
		for i := range 3 {
			err := s.For(store, id).Put(tenant.NewContext(t.Context(), id), tsdb.NewEntity(fmt.Sprint(i)), time.Unix(0, 0), "x")
			if err == nil {
				stored++
			} else if !errors.Is(err, limit.ErrExceeded) {
				t.Fatal(err)
			}
		}
		if stored != most {
			t.Errorf("%q: %d entities stored, want %d", flags, stored, most)
		}
	}
}
