package dataset_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// TestExpiredPointNamesItsClass: the error of a point that is too old names the class and how long it keeps points.
func TestExpiredPointNamesItsClass(t *testing.T) {
	classes, err := dataset.NewClasses([]gc.Class{{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	d := dataset.Dataset{Classes: classes}
	err = d.CheckExpired(bigtable.Time(now.AddDate(-1, 0, 0)), now)
	if !errors.Is(err, dataset.ErrExpired) || !strings.HasSuffix(err.Error(), "want what the retention class d90 (maxage=90d) keeps") {
		t.Errorf("the error of an expired point is %v", err)
	}
}
