package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// The pages, as they are: nothing is built.
//
//go:embed assets
var embedded embed.FS

// file is an asset in memory.
type file struct {
	body       []byte
	kind, etag string
}

var files = read()

func read() map[string]file {
	all := map[string]file{}
	_ = fs.WalkDir(embedded, "assets", func(name string, d fs.DirEntry, err error) error { // embedded files can be read
		if err != nil || d.IsDir() {
			return err
		}
		body, err := embedded.ReadFile(name)
		sum := sha256.Sum256(body)
		kind := mime.TypeByExtension(filepath.Ext(name))
		if filepath.Ext(name) == ".js" {
			kind = "text/javascript; charset=utf-8" // whatever this machine's own table of types says
		}
		all[strings.TrimPrefix(name, "assets/")] = file{body, kind, `"` + hex.EncodeToString(sum[:12]) + `"`}
		return err
	})
	preload(all)
	return all
}

// preload lets the page name all its modules, so that a browser asks for them at once, and not for each when it has
// read the one that imports it.
func preload(all map[string]file) {
	var links strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if filepath.Ext(name) == ".js" && name != "login.js" && name != "console.js" {
			links.WriteString(`<link rel="modulepreload" href="/assets/` + name + `">` + "\n")
		}
	}
	index := all["index.html"]
	index.body = bytes.Replace(index.body, []byte("<!-- modules -->\n"), []byte(links.String()), 1)
	sum := sha256.Sum256(index.body)
	index.etag = `"` + hex.EncodeToString(sum[:12]) + `"`
	all["index.html"] = index
}

// asset answers with a file. Assets hold no data, so they need no session. Browsers ask each time whether they have
// changed.
func (s *Console) asset(w http.ResponseWriter, r *http.Request) {
	f, ok := files[strings.TrimPrefix(r.URL.Path, "/assets/")]
	if !ok {
		s.fail(w, r, errNothing)
		return
	}
	s.sendFile(w, r, f)
}

func (s *Console) sendFile(w http.ResponseWriter, r *http.Request, f file) {
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", f.etag)
	if strings.Contains(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", f.kind)
	s.write(w, r, f.body)
}

// page answers with the HTML of all pages, or sends a user without a session to the login.
func (s *Console) page(w http.ResponseWriter, r *http.Request) {
	if s.sessionOf(r) == nil {
		http.Redirect(w, r, "/login?"+url.Values{"next": {r.URL.RequestURI()}}.Encode(), http.StatusFound)
		return
	}
	s.sendFile(w, r, files["index.html"])
}

// nothing answers a wrong address: a browser with a page that leads back.
func (s *Console) nothing(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		s.fail(w, r, errNothing)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	s.write(w, r, files["nothing.html"].body)
}

func (s *Console) loginPage(w http.ResponseWriter, r *http.Request) {
	s.sendFile(w, r, files["login.html"])
}
