// Package sqldoc tests the queries of docs/sql.md.
package sqldoc

import (
	"os"
	"strings"
	"testing"

	"github.com/cloudspannerecosystem/memefish"
)

// TestQueriesParse checks that each query of docs/sql.md is GoogleSQL. The parser is that of Spanner's dialect, which
// has all of the grammar that the page uses; whether Bigtable has the functions is not checked. internal/proof/docs in
// the root module compares the file with the page: a test's result is cached without regard to files outside of its
// module.
func TestQueriesParse(t *testing.T) {
	text, err := os.ReadFile("testdata/queries.sql")
	if err != nil {
		t.Fatal(err)
	}
	queries := strings.Split(strings.TrimSpace(string(text)), "\n;\n")
	if len(queries) < 10 {
		t.Errorf("found %d queries, want those of the page", len(queries))
	}
	for _, q := range queries {
		if _, err := memefish.ParseQuery("docs/sql.md", strings.TrimSuffix(q, "\n;")); err != nil {
			t.Errorf("%v\n%s", err, q)
		}
	}
	for _, bad := range []string{"SELECT keep['p:json' FROM tidemark", "SELECT _key FROM tidemark WHERE", "SELECT `hours.s['n'] FROM tidemark"} {
		if _, err := memefish.ParseQuery("bad", bad); err == nil {
			t.Errorf("the parser accepts %s", bad)
		}
	}
}
