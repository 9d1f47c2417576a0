package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
)

// print prints a result: v as JSON, or what text prints in columns.
func (a *app) print(v any, text func(w *tabwriter.Writer)) error {
	if a.form == "json" {
		return json.NewEncoder(a.std.out).Encode(v)
	}
	w := tabwriter.NewWriter(cleaned{a.std.out}, 0, 8, 2, ' ', 0)
	text(w)
	return w.Flush()
}

// say prints a remark to standard error, apart from the result.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.std.err, clean(fmt.Sprintf(format, args...)))
}

// clean returns a text of lines with all characters escaped that a terminal obeys: errors may hold names from files and
// services.
func clean(text string) string {
	var b strings.Builder
	for _, c := range text {
		if c == '\n' || c == '\t' || strconv.IsPrint(c) {
			b.WriteRune(c)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(c), "'"))
		}
	}
	return b.String()
}

// cell returns clean text of one line.
func cell(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(clean(text))
}

// cleaned writes clean text.
type cleaned struct{ to io.Writer }

func (w cleaned) Write(b []byte) (int, error) {
	if _, err := io.WriteString(w.to, clean(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// sensible returns a number with six digits, or with all before its point if they are up to 15.
func sensible(text string) string {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || len(text) <= 7 || !strings.ContainsAny(text, ".e") { // integers are exact
		return text
	}
	if math.Abs(x) >= 1e5 && math.Abs(x) < 1e15 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	short, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	return aggregate.Number(short)
}

// size returns a number of bytes in the unit that fits.
func size(bytes int64) string {
	if bytes < 1000 {
		return strconv.FormatInt(bytes, 10) + " B"
	}
	x, unit := float64(bytes), 0
	for x >= 999.5 {
		x, unit = x/1000, unit+1
	}
	return strconv.FormatFloat(x, 'f', max(0, 2-len(strconv.Itoa(int(x)))+1), 64) + " " + []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}[unit]
}

func terminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// screen is the size of a terminal in characters, and otherwise that of most.
func screen(v any) (width, lines int) {
	if terminal(v) {
		if width, lines, err := term.GetSize(int(v.(*os.File).Fd())); err == nil {
			return width, lines
		}
	}
	return 80, 30
}

// bar shows progress on a terminal, or with --progress.
type bar struct{ shown *progressbar.ProgressBar }

func (a *app) progressShown() bool { return a.progress || terminal(a.std.err) }

// bar begins to show progress. A total of -1 is unknown.
func (a *app) bar(what string, total int64) bar {
	if !a.progressShown() {
		return bar{}
	}
	every := 100 * time.Millisecond
	if !terminal(a.std.err) {
		every = 5 * time.Second // for a log
	}
	return bar{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(a.std.err),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionThrottle(every),
		progressbar.OptionSetWidth(40),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetSpinnerChangeInterval(0), // otherwise it is redrawn in the background, over the result
	)}
}

func (b bar) set(n int64) {
	if b.shown != nil {
		_ = b.shown.Set64(n)
	}
}

// of sets the total; one of -1 is unknown.
func (b bar) of(total int64) {
	if b.shown != nil && total != b.shown.GetMax64() {
		b.shown.ChangeMax64(total)
	}
}

func (b bar) describe(what string) {
	if b.shown != nil {
		b.shown.Describe(what)
	}
}

// end removes the bar from the terminal.
func (b bar) end() {
	if b.shown != nil {
		_ = b.shown.Clear()
		_ = b.shown.Exit()
	}
}
