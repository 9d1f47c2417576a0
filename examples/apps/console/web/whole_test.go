package web

import (
	"encoding/csv"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// patient records the deadline for reading from the client.
type patient struct {
	*httptest.ResponseRecorder
	until time.Time
}

func (p *patient) SetReadDeadline(t time.Time) error {
	p.until = t
	return nil
}

// TestSlowAnswersAreNotCut: a server's ReadTimeout counts from the beginning of a request, and would cancel it while it
// is answered.
func TestSlowAnswersAreNotCut(t *testing.T) {
	p := newPage(t, nil)
	p.put(acme, roof, noon, map[string]any{"n": 1})
	p.login("secret-of-acme")
	times := []string{"entity", roof.String(), "from", stampOf(noon), "to", stampOf(noon.Add(time.Hour)), "field", "n"}
	for _, name := range []string{"csv", "lines"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+address(name, times...), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.client.Jar.Cookies(r.URL) {
			r.AddCookie(c)
		}
		w := &patient{httptest.NewRecorder(), time.Now()}
		p.console.ServeHTTP(w, r)
		if w.Code != http.StatusOK || !w.until.IsZero() {
			t.Errorf("%s: %d, cut at %v; want 200 and no such end", name, w.Code, w.until)
		}
	}
}

// TestFilesHaveWholeTexts: pages shorten long texts, but a file is data; and 10,000 rows of a list have to fit into
// memory.
func TestFilesHaveWholeTexts(t *testing.T) {
	p := newPage(t, nil)
	long := strings.Repeat("ä", 1500)
	p.put(acme, roof, noon, map[string]any{"text": long, "list": []any{long}})
	p.login("secret-of-acme")
	_, body := p.get(address("csv", "entity", roof.String(), "from", stampOf(noon), "to", stampOf(noon.Add(time.Hour)), "field", "text", "field", "list"))
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if row := rows[1]; row[3] != long || row[4] != `["`+long+`"]` {
		t.Errorf("texts of %d and %d bytes, want them whole", len(row[3]), len(row[4]))
	}
	var list struct {
		Rows []struct {
			ID tsdb.Entity `json:"id"`
			V  []string    `json:"v"`
		}
	}
	p.read(address("latest", "field", "text"), &list)
	if len(list.Rows) != 1 || len(list.Rows[0].V[0]) > 210 {
		t.Errorf("%d rows, with a text of %d bytes; want it shortened to some 200", len(list.Rows), len(list.Rows[0].V[0]))
	}
	if status, body := p.get(address("latest", many("field", 13)...)); status != http.StatusBadRequest || !strings.Contains(body, "at most 12") {
		t.Errorf("thirteen columns: %d %s", status, body)
	}
}
