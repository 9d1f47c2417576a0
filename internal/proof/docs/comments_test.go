package docs

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// assumed are the declarations that the code in a package's comment leaves out, by the package's folder; those of ""
// belong to all.
var assumed = map[string]string{
	"": `
type Reading struct{ TempC, Humidity float64 }
var store *tsdb.Store
var acme = tenant.MustParse("acme")
var roof = tsdb.NewEntity("berlin", "roof-7")
var from, to time.Time`,
	"codec":             "var toProto func(Reading) (*durationpb.Duration, error)",
	"codec/zstd":        "type Report struct{}",
	"gc":                "var p, q gc.Policy; const day = 24 * time.Hour",
	"tenant/httptenant": "var addr string; var mux http.Handler",
	"tsdb":              "var err error; var t time.Time; var r Reading",
	"tsdb/errstatus":    "var repo *tsdb.Repository[Reading]; var r *http.Request; var w http.ResponseWriter; var device tsdb.Entity",
	"tsdb/retention":    "var readings, events tsdb.Dataset",
	"tsdb/tsdbtest":     "var t *testing.T; var readings tsdb.Dataset",
	"tsdb/window":       "var berlin *time.Location; var repo *tsdb.Repository[Reading]",
}

// otherText is how many indented texts of a package's comment are not Go code.
var otherText = map[string]int{"codec": 1, "gc": 1}

// TestPackageComments compiles the code in the comments of all public packages.
func TestPackageComments(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	b := newBuild(t, root)
	other, used := map[string]int{}, map[string]bool{}
	for _, c := range packageComments(t, root) {
		var code []string // of the blocks
		for _, block := range c.blocks {
			if text, ok := c.compilable(block); ok {
				code = append(code, text)
			} else {
				other[c.folder]++
			}
		}
		if len(code) == 0 {
			continue
		}
		used[c.folder] = true
		name := strings.ReplaceAll(c.folder, "/", "")
		b.file(name+"/code.go", withImports("comment"+name, c.source(code)))
	}
	if !maps.Equal(other, otherText) {
		t.Errorf("texts that are not Go code: %v, want %v", other, otherText)
	}
	for folder := range assumed {
		if folder != "" && !used[folder] {
			t.Errorf("assumed has the package %s, whose comment has no code", folder)
		}
	}
	if len(used) < 15 {
		t.Fatalf("found code in the comments of %d packages, want at least 15", len(used))
	}
	b.compile("./" + folder + "/...")
}

// packageComment is the comment of a package.
type packageComment struct {
	folder string // in the module
	file   string
	text   string // of the file
	blocks []string
}

// packageComments returns the comments of the module's public packages that have indented texts.
func packageComments(t *testing.T, root string) (list []packageComment) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{"internal", "examples", "testdata", ".git"}, e.Name()):
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil || parsed.Doc == nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		c := packageComment{folder: filepath.ToSlash(folder), file: path, text: string(text)}
		for _, block := range new(comment.Parser).Parse(parsed.Doc.Text()).Content {
			if code, ok := block.(*comment.Code); ok {
				c.blocks = append(c.blocks, code.Text)
			}
		}
		if len(c.blocks) > 0 {
			list = append(list, c)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// emptyLoop matches a loop whose body is left out.
var emptyLoop = regexp.MustCompile(`(?m)^(for (\w+), (\w+) := range .*) \{ … \}$`)

// compilable returns the code of a block without what stands for other code. It returns false for a text that is not
// Go.
func (c *packageComment) compilable(block string) (string, bool) {
	block = emptyLoop.ReplaceAllString(block, "$1 { _, _ = $2, $3 }")
	block = strings.NewReplacer(", …", "", "…, ", "", "*pb.Reading", "*durationpb.Duration").Replace(block)
	code := fence{code: block}
	if code.declares() {
		return block, true
	}
	_, err := parser.ParseFile(token.NewFileSet(), "", "package p; func _() {\n"+block+"}", 0)
	return block, err == nil
}

// source returns the blocks as one file. Each block of statements sees the variables of those before it and may declare
// them anew.
func (c *packageComment) source(blocks []string) string {
	decls, body, results := assumed[""]+"\n"+assumed[c.folder]+"\n", "", "error"
	for _, block := range blocks {
		first, _, _ := strings.Cut(block, "\n")
		line := 1 + strings.Count(c.text[:max(0, strings.Index(c.text, "//\t"+first))], "\n")
		position := fmt.Sprintf("//line %s:%d\n", c.file, line)
		if (fence{code: block}).declares() {
			decls += position + block
			continue
		}
		code, err := statements(valued(block), position)
		if err != nil {
			return err.Error() // which does not compile
		}
		if regexp.MustCompile(`(?m)^\s*return$`).MatchString(block) {
			results = ""
		}
		body += "{\n" + code
	}
	end := "return nil\n"
	if results == "" {
		end = ""
	}
	return decls + "\nfunc _(ctx context.Context) " + results + " {\n" + body + end + strings.Repeat("}\n", strings.Count(body, "{\n//line")) + end + "}\n"
}

// valued makes statements of expressions that are not calls of functions for their effect.
func valued(block string) string {
	const before = "package p; func _() {\n"
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", before+block+"}", 0)
	if err != nil {
		return block
	}
	list := parsed.Decls[0].(*ast.FuncDecl).Body.List
	for _, s := range slices.Backward(list) {
		e, ok := s.(*ast.ExprStmt)
		if !ok {
			continue
		}
		at := files.Position(e.Pos()).Offset - len(before)
		if text := block[at:]; !regexp.MustCompile(`^(fmt|http|conn|show|err)\w*\.`).MatchString(text) && !strings.HasPrefix(text, "show(") {
			block = block[:at] + "_ = " + block[at:]
		}
	}
	return block
}
