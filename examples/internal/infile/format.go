package infile

import (
	"bytes"
	"errors"
	"path"
	"path/filepath"
	"strings"
)

// Format is the format of a file.
type Format string

// The formats.
const (
	FormatCSV     Format = "csv"
	FormatNDJSON  Format = "ndjson"
	FormatLine    Format = "line"
	FormatParquet Format = "parquet"
)

// Formats are the names of all formats.
const Formats = "csv, ndjson, line or parquet"

var errFormat = errors.New("neither its name nor its beginning says its format; want --format " + Formats)

// endings are those of files' names, without those of gzip and zstd.
var endings = map[string]Format{
	".csv": FormatCSV, ".tsv": FormatCSV, ".ndjson": FormatNDJSON, ".jsonl": FormatNDJSON, ".json": FormatNDJSON,
	".lp": FormatLine, ".line": FormatLine, ".parquet": FormatParquet, ".pq": FormatParquet,
}

// Stem returns a file's name without its endings, with slashes between folders, and the ending that may say its format.
func Stem(name string) (stem, ending string) {
	stem = filepath.ToSlash(name)
	for _, packed := range []string{".gz", ".zst", ".gzip", ".zstd"} {
		stem = strings.TrimSuffix(stem, packed)
	}
	ending = path.Ext(stem)
	if endings[strings.ToLower(ending)] == "" {
		return stem, ""
	}
	return strings.TrimSuffix(stem, ending), strings.ToLower(ending)
}

// Guess returns the format of a file by its first bytes if it is Parquet, else by its name, else by its first line.
func (f *File) Guess() (Format, error) {
	head, err := f.peek()
	if err != nil {
		return "", err
	}
	if bytes.HasPrefix(head, []byte(magicParquet)) {
		return FormatParquet, nil
	}
	if _, ending := Stem(f.Name); ending != "" {
		return endings[ending], nil
	}
	first, head, _ := bytes.Cut(bytes.TrimPrefix(head, []byte("\ufeff")), []byte{'\n'})
	for Blank(first) && len(head) > 0 {
		first, head, _ = bytes.Cut(head, []byte{'\n'})
	}
	first = bytes.TrimLeft(first, " \t\r")
	switch {
	case len(first) == 0:
		return "", errFormat
	case first[0] == '{', first[0] == '[':
		return FormatNDJSON, nil
	case isLine(first):
		return FormatLine, nil
	case bytes.ContainsAny(first, ",;\t"):
		return FormatCSV, nil
	}
	return "", errFormat
}

// isLine reports whether a text has the form of a line of line protocol: a space before a field.
func isLine(text []byte) bool {
	var s syntax
	s.scan(text)
	return s.at == inValue || s.at == inText || s.at == inTail && text[0] != '#'
}
