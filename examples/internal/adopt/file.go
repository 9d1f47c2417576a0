package adopt

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// file is a mapping file.
type file struct {
	Project    text `yaml:"project"`
	Instance   text `yaml:"instance"`
	Table      text `yaml:"table"`
	AppProfile text `yaml:"app_profile"`
	Tenant     text `yaml:"tenant"`
	Dataset    struct {
		Name      text `yaml:"name"`
		Retention text `yaml:"retention"`
		Precision text `yaml:"precision"`
	} `yaml:"dataset"`
	Key struct {
		Separator text   `yaml:"separator"`
		Parts     []text `yaml:"parts"`
	} `yaml:"key"`
	Time struct {
		Encoding text `yaml:"encoding"`
		Unit     text `yaml:"unit"`
		Width    text `yaml:"width"`
		Reversed text `yaml:"reversed"`
	} `yaml:"time"`
	Cells  text         `yaml:"cells"`
	Value  fileColumn   `yaml:"value"`
	Fields []fileColumn `yaml:"fields"`
	Skip   []text       `yaml:"skip"`
}

// fileColumn is a column of the foreign table.
type fileColumn struct {
	Name   text `yaml:"name"`
	Column text `yaml:"column"`
	As     text `yaml:"as"`
}

// text is a value of a file with its line, which is 0 if the file does not have it.
type text struct {
	value string
	line  int
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *text) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: this is a list or a group of fields; want one value", n.Line)}}
	}
	t.value, t.line = n.Value, n.Line
	return nil
}

// decode reads the text of a file. It returns false if there is nothing to go on with.
func (f *file) decode(src []byte, r *mistakes) bool {
	d := yaml.NewDecoder(bytes.NewReader(src))
	d.KnownFields(true)
	err := d.Decode(f)
	if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
		for _, text := range wrong.Errors {
			r.yaml(text)
		}
		err = nil
	}
	switch {
	case errors.Is(err, io.EOF):
		r.add(0, "the file is empty; tidectl adopt describe drafts one")
		return false
	case err != nil:
		r.yaml("this is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: "))
		return false
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		r.add(0, "the file holds more than one document; want one, without a line ---")
	}
	return true
}

// mistakes collects the mistakes of a file.
type mistakes struct {
	all []mistake
}

type mistake struct {
	line int // 0 if it is not at one place
	text string
}

func (r *mistakes) add(line int, format string, args ...any) {
	r.all = append(r.all, mistake{line, fmt.Sprintf(format, args...)})
}

// require reports that a value is missing.
func (r *mistakes) require(name string, t text, want string) {
	if t.value == "" {
		r.add(t.line, "%s is missing; want %s", name, want)
	}
}

var (
	yamlLine    = regexp.MustCompile(`line (\d+): `)
	yamlUnknown = regexp.MustCompile(`^field (\S+) not found in type .*`)
	yamlType    = regexp.MustCompile("^cannot unmarshal \\S+( `.*`)? into .*")
)

// yaml adds a mistake that the library reports, with its line.
func (r *mistakes) yaml(text string) {
	line := 0
	if at := yamlLine.FindStringSubmatch(text); at != nil {
		line, _ = strconv.Atoi(at[1])
		text = strings.Replace(text, at[0], "", 1)
	}
	text = yamlUnknown.ReplaceAllString(text, "$1 is not a field here; docs/adoption.md lists the fields")
	text = yamlType.ReplaceAllString(text, "a value is$1 of another kind; want what docs/adoption.md shows for this field")
	r.add(line, "%s", text)
}

// mostMistakes bounds the mistakes of a report: a file of another kind has one on each line.
const mostMistakes = 20

func (r *mistakes) err() error {
	if len(r.all) == 0 {
		return nil
	}
	slices.SortStableFunc(r.all, func(a, b mistake) int { return cmp.Compare(a.line, b.line) })
	var lines []string
	for i, m := range r.all {
		if i == mostMistakes {
			lines = append(lines, fmt.Sprintf("and %d more mistakes", len(r.all)-i))
			break
		}
		if m.line > 0 {
			m.text = fmt.Sprintf("line %d: %s", m.line, m.text)
		}
		lines = append(lines, m.text)
	}
	return fileError(lines)
}

// fileError has a line for each mistake of a file.
type fileError []string

func (e fileError) Error() string { return strings.Join(e, "\n") }
func (e fileError) Unwrap() error { return ErrInvalid }
