package transfer_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"regexp"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var crcOfLine = regexp.MustCompile(`,"crc":"[0-9a-f]{8}"}$`)

// resealed returns a file with the lines that edit changes. Each line has a correct seal.
func resealed(file []byte, edit func(line string) string) []byte {
	return resealedWith(file, edit, func(line string) string { return line }, func([]byte) {})
}

// resealedWith is resealed. sum computes the sums of blocks from their sealed lines.
func resealedWith(file []byte, edit, sum func(line string) string, ofBlock func(line []byte)) []byte {
	var out bytes.Buffer
	crc, table := uint32(0), crc32.MakeTable(crc32.Castagnoli)
	for line := range strings.Lines(string(file)) {
		text := edit(crcOfLine.ReplaceAllString(strings.TrimSuffix(line, "\n"), ""))
		text = sum(text)
		crc = crc32.Update(crc, table, []byte(text))
		whole := fmt.Appendf(nil, "%s,\"crc\":\"%08x\"}\n", text, crc)
		if out.Write(whole); !strings.HasPrefix(text, `{"sum":`) && !strings.HasPrefix(text, `{"end":`) {
			ofBlock(whole)
		}
	}
	return out.Bytes()
}

// TestForgedSums: a block with a wrong sum, number of lines or number of points is damaged, and so is a wrong end, even
// if each line's seal is correct. Otherwise lines that a tool moved between files and sealed again would be imported.
func TestForgedSums(t *testing.T) {
	store, _ := tsdbtest.Open(t, clock, all...)
	fill(t, store, acme, 3)
	var file bytes.Buffer
	if _, err := transfer.Export(t.Context(), store, acme, &file, transfer.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	same := resealed(file.Bytes(), func(line string) string { return line })
	if !bytes.Equal(same, file.Bytes()) {
		t.Fatal("the test computes other seals than Export")
	}
	for _, of := range []string{`{"sum":`, `{"end":`} {
		for what, forge := range map[string]struct{ old, to string }{
			"sum":    {`^(\{"(?:sum|end)":")[0-9a-f]{8}`, "${1}00000000"},
			"lines":  {`("lines":)(\d+)`, "${1}9${2}"},
			"points": {`("points":)(\d+)`, "${1}9${2}"},
		} {
			forged := resealed(file.Bytes(), func(line string) string {
				if !strings.HasPrefix(line, of) {
					return line
				}
				return regexp.MustCompile(forge.old).ReplaceAllString(line, forge.to)
			})
			if bytes.Equal(forged, file.Bytes()) {
				t.Fatalf("%s of %s: the test changed nothing", what, of)
			}
			_, err := transfer.Check(t.Context(), bytes.NewReader(forged), nil)
			at, ok := errors.AsType[*transfer.LineError](err)
			if !errors.Is(err, transfer.ErrDamaged) || !ok || at.Line < 2 {
				t.Errorf("%s of %s: %v, want ErrDamaged", what, of, err)
			}
		}
	}
}
