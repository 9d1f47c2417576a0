package adopt

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// draftTenant is the tenant of a draft. A copy refuses it.
const draftTenant = "change-me"

// The bounds of a sample.
const (
	sampleRanges = 20
	sampleRows   = 50 // of a range
)

// Describe drafts a mapping file for a table from a sample of up to 1,000 rows: separator, parts and time of the row
// key, columns and their encodings. name is the table's name in the file. It is a draft: it names what it has guessed
// and from how many rows, and leaves the tenant and the names of key fields to change. Describe costs a request for
// each 50 rows, and sends back up to a hundred cells of a row.
func Describe(ctx context.Context, table bigtable.TableAPI, name string) ([]byte, error) {
	if table == nil {
		return nil, invalid.New(ErrInvalid, "table", "nil", "an open table")
	}
	s := &Source{t: bt.New(table, table, table, bt.Timeouts{Read: readTimeout, Write: readTimeout, Scan: scanTimeout})}
	keys, err := s.splits(ctx)
	if err != nil {
		return nil, err
	}
	starts := []string{""}
	for i := range sampleRanges - 1 {
		if at := (i + 1) * len(keys) / sampleRanges; at < len(keys) && keys[at] != starts[len(starts)-1] {
			starts = append(starts, keys[at])
		}
	}
	d := &draft{name: name, columns: map[string]*guess{}}
	for i, start := range starts {
		rng := bigtable.InfiniteRange(start)
		if i+1 < len(starts) {
			rng = bigtable.NewRange(start, starts[i+1])
		}
		most := int64(sampleRanges * sampleRows / len(starts))
		err := s.t.Read(ctx, bt.Scan{Rows: rng, Filter: bigtable.CellsPerRowLimitFilter(100), Limit: most, Long: true}, func(row *bt.Row) bool {
			d.add(row)
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	if len(d.rows) == 0 {
		return nil, invalid.New(ErrInvalid, "table", invalid.Quote(name), "a table with rows")
	}
	return d.text(), nil
}

// draft is what is known of a sample.
type draft struct {
	name     string
	rows     []string
	stamps   []bigtable.Timestamp // the newest of each row
	versions int                  // rows in which a column has several cells
	columns  map[string]*guess

	sep   string
	parts []string
	time  timeFormat
	inKey bool
	times []int64 // of the rows, in nanoseconds
}

// guess is which encodings fit all values of a column.
type guess struct {
	cells int
	not   [8]bool // by encoding
	plain bool    // some value is printable text
}

func (d *draft) add(row *bt.Row) {
	d.rows = append(d.rows, row.Key())
	var newest bigtable.Timestamp
	last, several := "", false
	for _, c := range row.Cells() {
		several = several || c.Column == last
		last, newest = c.Column, max(newest, c.Timestamp)
		g := d.columns[c.Column]
		if g == nil {
			if len(d.columns) == maxFields {
				continue
			}
			g = new(guess)
			d.columns[c.Column] = g
		}
		g.add(c.Value)
	}
	if several {
		d.versions++
	}
	d.stamps = append(d.stamps, newest)
}

func (g *guess) add(v []byte) {
	g.cells++
	g.plain = g.plain || utf8.Valid(v) && !slices.ContainsFunc(v, func(c byte) bool { return c < ' ' })
	for e := range encoding(len(encodings)) {
		_, err := e.value(v)
		if e == asJSON && (!json.Valid(v) || !strings.HasPrefix(strings.TrimSpace(string(v)), "{")) {
			g.not[e] = true
		}
		if err != nil {
			g.not[e] = true
		}
		if bits := binary.BigEndian.Uint64(append(slices.Clone(v), make([]byte, 8)...)); e == asFloat64 && len(v) == 8 {
			if x := math.Abs(math.Float64frombits(bits)); x != 0 && !(x > 1e-12 && x < 1e18) {
				g.not[e] = true
			}
		}
	}
}

// best returns the narrowest encoding of all values.
func (g *guess) best() encoding {
	order := []encoding{asJSON, asNumber, asFloat64, asInt64, asBool, asText, asBytes}
	if g.plain { // 8 bytes of text are no number
		order = []encoding{asJSON, asNumber, asBool, asText, asBytes}
	}
	for _, e := range order {
		if !g.not[e] {
			return e
		}
	}
	return asBytes
}

// separators are tried in this order.
const separators = "#|/\x00;,~@:_.-"

// split guesses the parts of the keys.
func (d *draft) split() {
	if d.bigEndian() {
		return
	}
	for _, sep := range separators {
		n := strings.Count(d.rows[0], string(sep)) + 1
		columns := make([][]string, n)
		same := n > 1 && n <= maxParts
		for _, key := range d.rows {
			parts := strings.Split(key, string(sep))
			if same = same && len(parts) == n; !same {
				break
			}
			for i, p := range parts {
				columns[i] = append(columns[i], p)
			}
		}
		if !same {
			continue
		}
		at := -1
		for i := n - 1; i >= 0 && at < 0; i-- {
			if d.guessTime(columns[i]) {
				at = i
			}
		}
		if at < 0 && d.sep != "" {
			continue
		}
		d.sep, d.parts, d.inKey = string(sep), d.fieldNames(n, at), at >= 0
		if d.inKey {
			return
		}
	}
	if d.sep == "" {
		d.parts = d.fieldNames(1, -1)
	}
}

// fieldNames names n parts, of which one may be the time.
func (d *draft) fieldNames(n, timeAt int) []string {
	names := make([]string, n)
	for i := range names {
		switch {
		case i == timeAt:
			names[i] = "time"
		case n-min(timeAt+1, 1) == 1:
			names[i] = "device"
		default:
			names[i] = "key" + strconv.Itoa(i+1)
		}
	}
	return names
}

// bigEndian guesses whether the keys have 8 bytes of time behind some separator.
func (d *draft) bigEndian() bool {
	for _, sep := range separators {
		for before := 1; before < 8; before++ {
			after, ok := d.bigEndianAt(string(sep), before)
			if !ok {
				continue
			}
			d.time.encoding, d.time.width = bigEndianTime, 8
			d.sep, d.parts, d.inKey = string(sep), d.fieldNames(before+1+after, before), true
			return true
		}
	}
	return false
}

// bigEndianAt guesses whether 8 bytes of time follow a number of parts, and returns how many parts follow the time.
func (d *draft) bigEndianAt(sep string, before int) (after int, ok bool) {
	var texts []string
	for i, key := range d.rows {
		at := 0
		for range before {
			n := strings.Index(key[at:], sep)
			if n < 0 {
				return 0, false
			}
			at += n + len(sep)
		}
		if len(key) < at+8 {
			return 0, false
		}
		texts = append(texts, strconv.FormatUint(binary.BigEndian.Uint64([]byte(key[at:at+8])), 10))
		rest := key[at+8:]
		parts := strings.Count(rest, sep)
		if rest != "" && !strings.HasPrefix(rest, sep) || i > 0 && parts != after {
			return 0, false
		}
		after = parts
	}
	return after, d.guessTime(texts) && d.time.encoding == decimalTime
}

// The times that a guess takes for real.
var guessFrom, guessTo = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// guessTime guesses the format of texts that are times.
func (d *draft) guessTime(texts []string) bool {
	width := len(texts[0])
	for _, t := range texts {
		if len(t) != width {
			width = 0
			break
		}
	}
	formats := []timeFormat{{encoding: rfc3339Time, unit: 1}}
	for _, unit := range []int64{1e9, 1e6, 1e3, 1} {
		formats = append(formats, timeFormat{unit: unit})
	}
	for _, most := range []uint64{math.MaxInt64, 9_999_999_999_999, 9_999_999_999, 253_402_300_799_999, math.MaxUint64} {
		for _, unit := range []int64{1e9, 1e6, 1e3, 1} {
			formats = append(formats, timeFormat{unit: unit, max: most})
		}
	}
	for _, f := range formats {
		f.width = width
		if _, ok := fraction(width); f.encoding == rfc3339Time && !ok {
			f.width = 0
		}
		var times []int64
		for _, text := range texts {
			units, problem := f.parse(text, rowkey.Nanoseconds)
			if t := rowkey.Nanoseconds.Time(units); problem != "" || t.Before(guessFrom) || !t.Before(guessTo) {
				break
			}
			times = append(times, units)
		}
		if len(times) == len(texts) {
			d.time, d.times = f, times
			return true
		}
	}
	return false
}

var unnamed = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// text returns the file.
func (d *draft) text() []byte {
	d.split()
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# A draft from %d rows. Change what is wrong, then run: tidectl adopt check FILE", len(d.rows))
	line("table: %s", quoted(d.name))
	line("tenant: %s # whose points these are; or name a part of the key tenant", draftTenant)
	line("dataset:\n  name: %s", quoted(unnamed.ReplaceAllString(d.name[:min(len(d.name), 32)], "_")))
	line("  # retention: d90=maxage=90d # by default points never expire")
	line("key:\n  separator: %s\n  parts: [%s] # such as %s", quoted(d.sep), strings.Join(d.parts, ", "), strconv.Quote(short(d.rows[0])))
	if d.inKey {
		d.describeTime(line)
	} else {
		line("# The key has no time that could be found: the timestamp of a cell is the time of its point.")
	}
	d.describeColumns(line)
	if d.inKey && d.versions > 0 {
		line("# %d of %d rows have several versions of a column. To copy only the newest: skip: [versions]", d.versions, len(d.rows))
	}
	return []byte(b.String())
}

// quoted returns a text for YAML.
func quoted(text string) string { return strconv.QuoteToASCII(text) }

func (d *draft) describeTime(line func(string, ...any)) {
	from, to := slices.Min(d.times), slices.Max(d.times)
	line("time: # %s to %s", rowkey.Nanoseconds.Time(from).Format(time.RFC3339), rowkey.Nanoseconds.Time(to).Format(time.RFC3339))
	line("  encoding: %s", map[timeEncoding]string{decimalTime: "decimal", bigEndianTime: "big_endian", rfc3339Time: "rfc3339"}[d.time.encoding])
	for _, unit := range []string{"s", "ms", "us", "ns"} {
		if d.time.encoding != rfc3339Time && timeUnits[unit] == d.time.unit {
			line("  unit: %s", unit)
		}
	}
	if d.time.width > 0 && d.time.encoding != bigEndianTime {
		line("  width: %d", d.time.width)
	}
	if d.time.max > 0 {
		line("  reversed: %d", d.time.max)
	}
	equal := 0
	for i, stamp := range d.stamps {
		if int64(stamp)/1000 == d.times[i]/1e6 {
			equal++
		}
	}
	cells := "unknown"
	if equal == len(d.rows) {
		cells = "time"
	}
	line("cells: %s # in %d of %d rows the timestamp is the point's time; written if the service sets it", cells, equal, len(d.rows))
}

func (d *draft) describeColumns(line func(string, ...any)) {
	names := slices.Sorted(maps.Keys(d.columns))
	if len(names) == 1 {
		if g := d.columns[names[0]]; utf8.ValidString(names[0]) {
			line("value: {column: %s, as: %s} # all %d cells", quoted(names[0]), encodings[g.best()], g.cells)
			return
		}
	}
	line("fields:")
	seen := map[string]bool{}
	for _, name := range names {
		if !utf8.ValidString(name) {
			line("  # column %q is not UTF-8: list columns under skip to leave it out", short(name))
			continue
		}
		g := d.columns[name]
		_, field, _ := strings.Cut(name, ":")
		if field == "" || seen[field] {
			field = name
		}
		seen[field] = true
		line("  - {name: %s, column: %s, as: %s} # all %d cells", quoted(field), quoted(name), encodings[g.best()], g.cells)
	}
}
