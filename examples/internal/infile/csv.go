package infile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/codec"
)

// CSVOptions say how a file of CSV is read. The zero value is RFC 4180 with a header.
type CSVOptions struct {
	// Comma separates fields. Zero is the one of ; tab and , that the first line has most often.
	Comma byte
	// DecimalComma says that numbers have a comma, and no point.
	DecimalComma bool
	// Names are the columns of a file without a header. Nil means that the first line has them.
	Names []string
	// Rename gives columns of the header other names.
	Rename map[string]string
	// Text and Number say of a column that its cells are text or numbers. Nil means that they say it themselves.
	Text, Number func(name string) bool
}

// CSV reads rows of CSV. A cell that is a number is a json.Number, true or false a bool, and any other a text. An empty
// cell is nil. A quoted cell may have newlines; one that does not end consumes the lines after it.
type CSV struct {
	*liner
	opts    CSVOptions
	columns []column
	text    []byte
	cells   []string
	values  map[string]any
}

// column is a column of CSV.
type column struct {
	name         string
	text, number bool
}

// NewCSV reads the header of a file.
func NewCSV(f *File, opts CSVOptions) (*CSV, error) {
	l, err := newLiner(f)
	if err != nil {
		return nil, err
	}
	c := &CSV{liner: l, opts: opts, values: map[string]any{}}
	first, err := l.r.Peek(l.r.Size())
	if err != nil && err != io.EOF {
		return nil, err
	}
	first, _, _ = bytes.Cut(bytes.TrimLeft(first, "\r\n"), []byte{'\n'})
	c.setComma(first, len(opts.Names))
	if opts.Names != nil {
		return c, c.setColumns(opts.Names)
	}
	rec, err := c.record()
	switch {
	case err == io.EOF:
		return nil, errors.New("the file is empty; want a header, or --columns that names all columns")
	case err != nil:
		return nil, err
	case rec.Err != nil:
		return nil, fmt.Errorf("the header cannot be read: %w", rec.Err)
	}
	names, err := c.split(rec.Text)
	if err != nil {
		return nil, fmt.Errorf("the header cannot be read: %w", err)
	}
	return c, c.setColumns(names)
}

// setComma guesses the separator from a line: the one that it has most often, or that makes n fields of it.
func (c *CSV) setComma(line []byte, n int) {
	if c.opts.Comma != 0 {
		return
	}
	c.opts.Comma = ','
	most := 0
	for _, comma := range []byte(";\t,") {
		found, quoted := 0, false
		for _, b := range line {
			if b == '"' {
				quoted = !quoted
			} else if b == comma && !quoted {
				found++
			}
		}
		if found > most && (n == 0 || found == n-1) {
			c.opts.Comma, most = comma, found
		}
	}
}

func (c *CSV) setColumns(names []string) error {
	is := func(f func(string) bool, name string) bool { return f != nil && f(name) }
	renamed := 0
	for _, name := range names {
		name = strings.TrimSpace(name)
		if other, ok := c.opts.Rename[name]; ok {
			name, renamed = other, renamed+1
		}
		if name != "" && slices.ContainsFunc(c.columns, func(other column) bool { return other.name == name }) {
			return fmt.Errorf("two columns have the name %.64q; --columns gives one another", name)
		}
		c.columns = append(c.columns, column{name, is(c.opts.Text, name), is(c.opts.Number, name)})
	}
	if renamed < len(c.opts.Rename) {
		return fmt.Errorf("--columns renames a column that the header has not; it has %.1000q", names)
	}
	return nil
}

// Next implements Reader. It skips empty lines.
func (c *CSV) Next() (Record, error) {
	rec, err := c.record()
	if err != nil || rec.Err != nil {
		return rec, err
	}
	rec.Values, rec.Err = c.row(rec.Text)
	return rec, nil
}

// row returns the fields of a record.
func (c *CSV) row(text string) (map[string]any, error) {
	cells, err := c.split(text)
	if err != nil {
		return nil, err
	}
	if len(cells) != len(c.columns) {
		return nil, fmt.Errorf("the line has %d fields, and there are %d columns", len(cells), len(c.columns))
	}
	clear(c.values)
	for i, cell := range cells {
		if cell == "" {
			if c.columns[i].name != "" {
				c.values[c.columns[i].name] = nil
			}
			continue
		}
		if c.values[c.columns[i].name], err = c.value(cell, c.columns[i]); err != nil {
			return nil, err
		}
	}
	return c.values, nil
}

// value returns what a cell is.
func (c *CSV) value(cell string, in column) (any, error) {
	if in.text {
		return cell, nil
	}
	text := strings.TrimSpace(cell)
	number := text
	if c.opts.DecimalComma {
		switch point := strings.Contains(text, "."); {
		case point && in.number:
			return nil, fmt.Errorf("%.64q in the column %.64q has a point, and the decimal point is a comma", text, in.name)
		case point:
			return cell, nil
		}
		number = strings.Replace(text, ",", ".", 1)
	}
	switch {
	case isNumber(number):
		return json.Number(number), nil
	case strings.EqualFold(text, "true"):
		return true, nil
	case strings.EqualFold(text, "false"):
		return false, nil
	}
	return cell, nil
}

// isNumber reports whether a text is a number as JSON has it, or one that begins with a point. A text with a plus or
// with leading zeros is none: it is a telephone number, a postal code or the like.
func isNumber(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || digits[0] != '.' && (digits[0] < '0' || digits[0] > '9') {
		return false
	}
	if len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return false
	}
	_, ok := codec.ParseNumber(text)
	return ok
}

// record reads the text of the next record that is not empty.
func (c *CSV) record() (rec Record, err error) {
	for {
		rec = Record{First: c.at.Line + 1}
		before := c.at.Offset
		c.text = c.text[:0]
		var q quotes
		scan := func(part []byte) { q = q.scan(part, c.opts.Comma) }
		for more := true; more; more = q == inQuotes {
			at := c.at.Offset
			if c.text, err = c.line(c.text, scan); err == io.EOF && at > before {
				break
			} else if err != nil {
				return rec, err
			}
		}
		rec.Last, rec.Bytes = c.at.Line, int(c.at.Offset-before)
		text := bytes.TrimRight(c.text, "\r\n")
		switch {
		case len(text) == 0:
			continue
		case len(c.text) > MaxRecord:
			rec.Text, rec.Err = short(text), errLong
		case q == inQuotes:
			rec.Text, rec.Err = short(text), errors.New("a quoted field does not end")
		case !utf8.Valid(text):
			rec.Text, rec.Err = short(text), errors.New("the line is not valid UTF-8; iconv -f WINDOWS-1252 -t UTF-8 converts many such files")
		default:
			rec.Text = string(text)
		}
		return rec, nil
	}
}
