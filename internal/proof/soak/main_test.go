package soak

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(serveEngine) != "" {
		os.Exit(serve())
	}
	goleak.VerifyTestMain(m)
}
