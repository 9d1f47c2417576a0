package rollup_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
)

// TestAddedRowsAreTheDocumentedOnes: other programs and later versions read these bytes.
func TestAddedRowsAreTheDocumentedOnes(t *testing.T) {
	const (
		row    = "acme#views!rollup.hour#10.0.0.1#x#9223370263926775807"
		bucket = "1774728000000"
	)
	numbers := []string{
		"keep.n:cents@" + bucket + " 000000000000007d",
		"keep.s:c.cents@" + bucket + " 0000000000000001",
		"keep.s:n@" + bucket + " 0000000000000001",
		"keep.s:s.cents@" + bucket + " 000000000000007d",
		"keep.x:cents@" + bucket + " 000000000000007d",
	}
	for _, tt := range []struct {
		mode    rollup.Mode
		control string
	}{
		{rollup.Once, ""},
		{rollup.ByStream, `^keep\.c:h:[0-9a-f]{32}@1775519999999 (30){20}$`},
		{rollup.ByMessage, `^keep\.c:m:c:a@1775(519999999|520[0-9]{6}) (3[0-9]){19}(3[0-9]|6[1-6]){16}$`},
	} {
		a := newAds(t, rollup.Options{Mode: tt.mode, Span: 30 * 24 * time.Hour}, tsdb.SchemaOptions{}) // the former default span of all modes
		e, v := tsdb.NewEntity("10.0.0.1", "x"), view{Cents: 1.25}
		var err error
		switch tt.mode {
		case rollup.Once:
			err = rollup.NewAdder(a.rollup, a.repo, nil).Add(t.Context(), e, start, v)
		case rollup.ByMessage:
			_, err = rollup.NewAdder(a.rollup, a.repo, nil).AddMessage(t.Context(), "a", e, start, v)
		case rollup.ByStream:
			w := a.writer(filepath.Join(t.TempDir(), "journal"))
			err = errors.Join(rollup.NewAdder(a.rollup, a.repo, w).Add(t.Context(), e, start, v), w.Flush(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		control := ""
		err = a.table.ReadRows(context.Background(), bigtable.PrefixRange("acme#"), func(r bigtable.Row) bool {
			if r.Key() != row {
				t.Errorf("%v: the table has the row %q, want %q", tt.mode, r.Key(), row)
			}
			for _, items := range r {
				for _, item := range items {
					cell := fmt.Sprintf("%s@%d %x", item.Column, int64(item.Timestamp)/1000, item.Value)
					if strings.HasPrefix(cell, "keep.c:") {
						control += cell
						continue
					}
					got = append(got, cell)
				}
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Sort(got); !slices.Equal(got, numbers) {
			t.Errorf("%v: the row holds %q, want %q", tt.mode, got, numbers)
		}
		if ok, err := regexp.MatchString(tt.control, control); err != nil || !ok || (control == "") != (tt.control == "") {
			t.Errorf("%v: control cells are %q, want %q", tt.mode, control, tt.control)
		}
	}
}
