package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLinks checks that each relative link in a document leads to a file, and each anchor to a heading.
func TestLinks(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md", "examples/apps/*/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(string(text), -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				links++
				path, anchor, _ := strings.Cut(m[1], "#")
				target := file
				if path != "" {
					target = filepath.Join(filepath.Dir(file), path)
				}
				if _, err := os.Stat(target); err != nil {
					t.Errorf("%s links to %s: %v", file, m[1], err)
				} else if anchor != "" && !headings(t, target)[anchor] {
					t.Errorf("%s links to %s: the heading does not exist", file, m[1])
				}
			}
		}
	}
	if links < 30 {
		t.Errorf("found %d links, want at least 30", links)
	}
}

// TestNamedFiles checks that the files and folders that CONTRIBUTING.md and docs/maintaining.md name exist. A file
// without a folder is in the folder that was named last.
func TestNamedFiles(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	named := regexp.MustCompile("`((?:[\\w.-]+/)*(?:[\\w.-]+/|[\\w-]+\\.(?:go|md|txt)))`")
	for _, file := range []string{"CONTRIBUTING.md", "docs/maintaining.md"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		folder, names := "", 0
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			name := m[1]
			if dir, base := filepath.Split(name); dir == "" {
				name = folder + base
			} else {
				folder = dir
			}
			if names++; !exists(filepath.Join(root, name)) && !exists(filepath.Join(root, m[1])) {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
		if names < 10 {
			t.Errorf("%s: found %d names of files, want at least 10", file, names)
		}
	}
}

// TestLongRuns checks that each long run of docs/maintaining.md runs a test, and that its flags exist.
func TestLongRuns(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs/maintaining.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^.*go test (\./[\w/]+) (.*)$`).FindAllStringSubmatch(string(text), -1)
	for _, command := range commands {
		files, err := filepath.Glob(filepath.Join(root, command[1], "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		source := ""
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source += string(text)
		}
		for _, run := range regexp.MustCompile(`-(?:run|fuzz) '?\^?([\w|]+)`).FindAllStringSubmatch(command[2], -1) {
			if !regexp.MustCompile(`(?m)^func (Test|Fuzz)?\w*(` + run[1] + `)\w*\(`).MatchString(source) {
				t.Errorf("%s: no test matches %s", command[0], run[1])
			}
		}
		for _, flag := range regexp.MustCompile(` -(\w+\.\w+|soak|trucks)`).FindAllStringSubmatch(command[2], -1) {
			if !strings.Contains(source, `"`+flag[1]+`"`) {
				t.Errorf("%s: there is no flag %s", command[0], flag[1])
			}
		}
	}
	if len(commands) < 15 {
		t.Errorf("found %d commands, want at least 15", len(commands))
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// headings returns the anchors that GitHub generates for the headings of a file.
func headings(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		words := regexp.MustCompile(`[^\p{L}\p{N}\- _]`).ReplaceAllString(strings.ToLower(m[1]), "")
		out[strings.ReplaceAll(words, " ", "-")] = true
	}
	return out
}
