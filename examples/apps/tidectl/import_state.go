package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/examples/internal/infile"
)

// importState says how far the import of a file is. It is in a file that is replaced after each stored batch. All
// records before Position are stored or refused; the next ones may be stored, which changes nothing when they are
// stored again.
type importState struct {
	Version  int             `json:"version"`
	Input    importInput     `json:"input"`
	Position infile.Position `json:"position"`
	Records  int64           `json:"records"`
	Blank    int64           `json:"blank"` // records without a value
	Points   int64           `json:"points"`
	Refused  int64           `json:"refused"`
	// Reasons counts the refused records by reason.
	Reasons map[string]int64 `json:"reasons"`
	// Errors is the file of refused records, and ErrorBytes its size.
	Errors     string `json:"errors,omitempty"`
	ErrorBytes int64  `json:"error_bytes,omitempty"`
	Done       bool   `json:"done"`
}

const stateVersion = 1

// importInput is what has to be the same when an import goes on.
type importInput struct {
	Size    int64         `json:"size"`
	Head    string        `json:"head"` // a hash of the beginning
	Store   string        `json:"store"`
	Tenant  string        `json:"tenant"`
	Route   string        `json:"route"`
	Format  infile.Format `json:"format"`
	Columns string        `json:"columns"`
	Comma   string        `json:"comma"`
	Decimal bool          `json:"decimal_comma"`
}

// differs returns what is not the same, or "".
func (in importInput) differs(now importInput) string {
	for _, d := range []struct {
		what string
		same bool
	}{
		{"the file", in.Size == now.Size && in.Head == now.Head},
		{fmt.Sprintf("the store, which was %s", in.Store), in.Store == now.Store},
		{fmt.Sprintf("the tenant, which was %s", in.Tenant), in.Tenant == now.Tenant},
		{"the route", in.Route == now.Route},
		{"how the file is read (--format, --columns, --comma, --decimal)", in == now},
	} {
		if !d.same {
			return d.what
		}
	}
	return ""
}

// loadState returns the state of an earlier run, or a new one.
func loadState(name string, in importInput) (*importState, error) {
	first := &importState{Version: stateVersion, Input: in, Reasons: map[string]int64{}}
	if name == "" {
		return first, nil
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return first, nil
	}
	if err != nil {
		return nil, err
	}
	st := &importState{}
	const way = "delete it to import the whole file again, or give another --state"
	if err := json.Unmarshal(text, st); err != nil || st.Version != stateVersion {
		return nil, fmt.Errorf("%s is not the state of an import of this version; %s", name, way)
	}
	if what := st.Input.differs(in); what != "" {
		return nil, fmt.Errorf("%s is the state of another import, which differs in %s; %s", name, what, way)
	}
	if st.Reasons == nil {
		st.Reasons = map[string]int64{}
	}
	return st, nil
}

// errorFile has a line of JSON for each refused record.
type errorFile struct {
	name string // absolute
	file *os.File
	out  *bufio.Writer
	size int64
}

// maxErrorText is how much of a refused record is written.
const maxErrorText = 4 << 10

// begin opens the file, unless it is open. It must be new or empty, or that of an earlier run that goes on: what that
// run has written after its state is taken away. A run that was killed before it saved a state leaves it empty.
func (e *errorFile) begin(name string, st *importState) (err error) {
	if name == "" {
		return nil
	}
	if e.file == nil {
		if e.name, err = filepath.Abs(name); err != nil {
			return err
		}
		how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
		if there, err := os.Stat(e.name); st.Errors == e.name || err == nil && there.Mode().IsRegular() && there.Size() == 0 {
			how = os.O_WRONLY | os.O_CREATE
		}
		if e.file, err = os.OpenFile(e.name, how, 0o600); err != nil {
			return fmt.Errorf("--errors: %w; want a new file, or that of the import that goes on", err)
		}
		info, err := e.file.Stat()
		if err != nil {
			return err
		}
		e.size = info.Size()
		if st.Errors == e.name {
			e.size = min(e.size, st.ErrorBytes)
		}
		if err := e.file.Truncate(e.size); err != nil {
			return err
		}
		if _, err := e.file.Seek(e.size, io.SeekStart); err != nil {
			return err
		}
		e.out = bufio.NewWriter(e.file)
	}
	st.Errors, st.ErrorBytes = e.name, e.size
	return nil
}

// add writes a record.
func (e *errorFile) add(file string, l *origin, reason string) error {
	if e.file == nil {
		return nil
	}
	text := l.text[:min(len(l.text), maxErrorText)]
	line, err := json.Marshal(struct {
		File   string `json:"file"`
		Line   int64  `json:"line"`
		Last   int64  `json:"last_line,omitempty"`
		Reason string `json:"reason"`
		Text   string `json:"text,omitempty"`
	}{file, l.First, l.last(), reason, strings.ToValidUTF8(text, string(utf8.RuneError))})
	if err != nil {
		return err
	}
	n, err := e.out.Write(append(line, '\n'))
	e.size += int64(n)
	return err
}

// sync makes the lines so far durable.
func (e *errorFile) sync() error {
	if e.file == nil {
		return nil
	}
	return errors.Join(e.out.Flush(), e.file.Sync())
}

func (e *errorFile) close() error {
	if e.file == nil {
		return nil
	}
	return errors.Join(e.out.Flush(), e.file.Close())
}
