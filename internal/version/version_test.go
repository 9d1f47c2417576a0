package version_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/version"
)

// TestVersionIsThatOfTheChangelog: a release has a dated heading with its version. Between releases the first heading
// is Unreleased.
func TestVersionIsThatOfTheChangelog(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	first := regexp.MustCompile(`(?m)^## (.*)$`).FindStringSubmatch(string(text))
	if first == nil {
		t.Fatal("CHANGELOG.md has no heading of a version")
	}
	release, dev := strings.CutSuffix(version.Version, "-dev")
	want := regexp.MustCompile(`^\[` + regexp.QuoteMeta(release) + `\] - \d{4}-\d\d-\d\d$`)
	if dev {
		want = regexp.MustCompile(`^\[Unreleased\]$`)
	}
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(release) || !want.MatchString(first[1]) {
		t.Errorf("version %s, and the first heading of CHANGELOG.md is %q, want %v", version.Version, first[1], want)
	}
}
