package transfer_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

// TestFileThatCannotBeRead: a read error of the disk is not reported as a damaged file.
func TestFileThatCannotBeRead(t *testing.T) {
	broken := errors.New("input/output error")
	for name, begins := range map[string]string{"at once": "", "within the header": `{"tidemark":"ex`, "within other bytes": "PK"} {
		_, err := transfer.Check(t.Context(), io.MultiReader(strings.NewReader(begins), iotest.ErrReader(broken)), nil)
		var at *transfer.LineError
		if !errors.Is(err, broken) || errors.Is(err, transfer.ErrVersion) || errors.Is(err, transfer.ErrDamaged) || !errors.As(err, &at) || at.Line != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := transfer.Check(t.Context(), strings.NewReader("PK\n"), nil); !errors.Is(err, transfer.ErrVersion) || !strings.Contains(err.Error(), `the beginning of the file is "PK\n"; want`) {
		t.Errorf("another kind of file: %v, want an ErrVersion with its beginning", err)
	}
}
