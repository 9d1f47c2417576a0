package main

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/urfave/cli/v3"
)

// examples are shown below the help of a command, by its name without "tidectl". Those of a group are of its commands.
var examples = map[string][]string{
	"":                {"--dir ./tidemark-data datasets list", "--dir ./tidemark-data latest readings acme", "source <(tidectl completion bash)"},
	"tenants list":    {"--dir ./tidemark-data tenants list -o json"},
	"tenants show":    {"--dir ./tidemark-data tenants show acme"},
	"tenants usage":   {"--dir ./tidemark-data tenants usage acme"},
	"tenants onboard": {"--dir ./tidemark-data tenants onboard acme"},
	"tenants export":  {"--dir ./tidemark-data tenants export acme --file acme.ndjson", "--dir ./tidemark-data tenants export acme --dataset readings --format csv --file acme.csv"},
	"tenants import":  {"--dir ./other tenants import acme --file acme.ndjson --create"},
	"tenants erase":   {"--dir ./tidemark-data tenants erase acme --dry-run", "--dir ./tidemark-data tenants erase acme --entity host=lab"},
	"tenants readmit": {"--dir ./tidemark-data tenants readmit acme"},
	"datasets list":   {"--dir ./tidemark-data datasets list"},
	"datasets show":   {"--dir ./tidemark-data datasets show --dataset readings -o json"},
	"datasets plan":   {"--dir ./tidemark-data datasets plan --dataset power --class d7"},
	"datasets retire": {"--dir ./tidemark-data datasets retire --dataset power --class d7"},
	"datasets remove": {"--dir ./tidemark-data datasets remove --dataset power --class d7 --yes"},
	"retention plan":  {"--dir ./tidemark-data retention plan --set d30=maxage=20d --out shorter.json"},
	"retention apply": {"--dir ./tidemark-data retention apply --plan shorter.json --allow d30"},
	"retention drift": {"--dir ./tidemark-data retention drift --detailed-exitcode"},
	"advise":          {"--dir ./tidemark-data advise readings acme", "advise orders --file orders.txt --key order"},
	"heatmap show":    {"heatmap show recording.heat", "heatmap show --by tenant monday.heat tuesday.heat", "heatmap show --html picture.html recording.heat"},
	"heatmap find":    {"heatmap find --detailed-exitcode recording.heat"},
	"heatmap merge":   {"heatmap merge --out all.heat one.heat two.heat"},
	"get":             {"--dir ./tidemark-data get readings acme host=lab device=probe"},
	"latest":          {"--dir ./tidemark-data latest readings acme", "--dir ./tidemark-data -o csv latest readings acme host=lab"},
	"range":           {"--dir ./tidemark-data range readings acme host=lab --from 2026-06-01 --to 2026-06-02"},
	"windows":         {"--dir ./tidemark-data windows readings acme host=lab device=probe --measure used --every 1h --from 2026-06-01 --to 2026-06-02"},
	"groups":          {"--dir ./tidemark-data groups readings acme --by host --measure used --aggregate mean,p95 --every 1d --from 2026-06-01 --to 2026-06-08"},
	"fields":          {"--dir ./tidemark-data fields readings acme"},
	"outages":         {"--dir ./tidemark-data outages readings acme host=lab device=probe --longer 6h --from 2026-06-01 --to 2026-06-08"},
	"silent":          {"--dir ./tidemark-data silent readings acme --for 24h"},
	"watch":           {"--dir ./tidemark-data watch readings acme host=lab device=probe"},
	"put":             {`--dir ./tidemark-data put readings acme host=lab device=probe --json '{"used":1}'`},
	"delete":          {"--dir ./tidemark-data delete readings acme host=lab device=probe --time 2026-06-01T12:00:00Z"},
	"import":          {"--dir ./tidemark-data import points.csv --tenant acme --route 'dataset=rooms key=site,device time=ts,auto' --dry-run"},
}

func init() { cli.HelpPrinter = printHelp } // package cli has it for all commands

// printHelp prints the help of a command with its examples.
func printHelp(out io.Writer, template string, of any) {
	var text bytes.Buffer
	cli.DefaultPrintHelp(&text, template, of)
	if c, ok := of.(*cli.Command); ok {
		name := strings.TrimPrefix(strings.TrimPrefix(c.FullName(), "tidectl"), " ")
		if list := examples[name]; len(list) > 0 {
			text.WriteString("\nEXAMPLES:\n")
			for _, example := range list {
				text.WriteString("   " + commandLine(example) + "\n")
			}
		}
	}
	_, _ = io.WriteString(out, inkOf(out).help(text.String())) // as cli does
}

// commandLine is an example as a user types it. One that begins with another program is that.
func commandLine(example string) string {
	if strings.HasPrefix(example, "source ") {
		return example
	}
	return "tidectl " + example
}

// ink says whether colours are used: on a terminal, unless NO_COLOR is set or the terminal is dumb.
type ink bool

func inkOf(out any) ink {
	return ink(terminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

func (i ink) bold(text string) string { return i.with("1", text) }
func (i ink) red(text string) string  { return i.with("1;31", text) }
func (i ink) blue(text string) string { return i.with("36", text) }

func (i ink) with(code, text string) string {
	if !i {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

var (
	headings = regexp.MustCompile(`(?m)^[A-Z][A-Z ]+:$`)
	flagName = regexp.MustCompile(`(?m)^(   )(-[-a-z, ]*[a-z])`)
	commands = regexp.MustCompile(`(?m)^(   )([a-z]+)(  +)`)
	prompts  = regexp.MustCompile(`(?m)^(   )(tidectl|source)( .*)$`)
)

// help colours a help text.
func (i ink) help(text string) string {
	if !i {
		return text
	}
	text = headings.ReplaceAllStringFunc(text, i.bold)
	text = flagName.ReplaceAllString(text, "$1"+i.blue("$2"))
	text = commands.ReplaceAllString(text, "$1"+i.blue("$2")+"$3")
	return prompts.ReplaceAllString(text, "$1"+i.blue("$2")+"$3")
}
