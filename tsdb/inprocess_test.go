package tsdb_test

import (
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// inProcess makes a repository's store read as package embedded's stores do, which ask for only the first row of each
// range.
func inProcess(t testing.TB, repo *tsdb.Repository[reading]) {
	t.Helper()
	in, err := inside.Of(repo).Internals()
	if err != nil {
		t.Fatal(err)
	}
	in.OnlyFirst = true
}

// TestLatestManyInProcess: a store in the process of its engine needs one request for devices that it has not read
// before, also if a row that is no point stands before the newest point or in place of all points.
func TestLatestManyInProcess(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	inProcess(t, repo)
	var devices []tsdb.Entity
	for n := range 40 {
		devices = append(devices, device("berlin", n))
		for k := range n % 4 {
			putAll(t, repo, []tsdb.Point[reading]{{Entity: devices[n], Time: start.Add(time.Duration(k) * time.Minute), Value: reading{float64(k)}}})
		}
	}
	conn.Reset()
	sameAsLatest(t, "first", repo, devices)
	if n := conn.Counts().Calls[tsdbtest.ReadRows]; n != 1+len(devices) {
		t.Errorf("%d requests, want one, and one of each Latest", n)
	}
	for _, n := range []int{3, 4} { // one with points, one without
		foreign := bigtable.NewMutation()
		foreign.Set("keep", "p:json", bigtable.Time(start), []byte("{}"))
		if err := table.Apply(t.Context(), key(devices[n], start.Add(time.Hour))+"#of another program#", foreign); err != nil {
			t.Fatal(err)
		}
	}
	sameAsLatest(t, "behind rows of another program", repo, devices)
}
