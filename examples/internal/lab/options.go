package lab

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// RunOptions configure a run. The zero value executes a hundredth of the load, sixty times as fast as it is, on the
// embedded engine.
type RunOptions struct {
	// Candidates are the names of those to run. Empty means all.
	Candidates []string
	// Scale is the part of the entities and of the queries that is executed, above 0 and up to 1. Zero is 0.01.
	Scale float64
	// Speed is how many seconds of the load are executed in a second, from 1 to 3600. Zero is 60. A run that cannot
	// keep up takes longer, and reports by how much.
	Speed float64
	// Concurrency is how many requests of the load are under way, up to 256. Zero is 16. A query may send more than
	// one.
	Concurrency int
	// MaxTime ends each candidate's run, up to a day. Zero is 10 minutes. What was done until then is reported.
	MaxTime time.Duration
	// Dir is where the temporary folders are made that hold the tables. They are removed as scratch tables are. Empty
	// is the system's folder for temporary files.
	Dir string
	// Cloud is the instance on which to run. Each candidate gets a scratch table, which is removed at the end, also if
	// the context ends or the run panics. Table and StoreOptions are ignored. Nil is the embedded engine.
	Cloud *tsdb.Config
	// Progress is called about twice a second, on one goroutine. Nil is for none.
	Progress func(Progress)
}

// Progress is how far a run is.
type Progress struct {
	// Candidate is the one that runs, and Part is "heavy load" or "load".
	Candidate, Part string
	// Done is from 0 to 1, of this part: 1 only if all of it was executed.
	Done float64
	// Points are those that were stored, and Queries those that have ended.
	Points, Queries int64
}

// The bounds of a run. They keep what it does on this machine within minutes and gigabytes.
const (
	maxPoints  = 20_000_000
	maxAsked   = 5_000_000
	maxStored  = 8 << 30 // bytes on disk
	perRow     = 120     // bytes of a row besides its payload, about
	mostBatch  = 500     // points of a request
	maxRequest = 4 << 20 // bytes of a request, of which each worker has one in memory
	maxWorkers = 256
)

func (o RunOptions) resolve(p *Plan) (RunOptions, []*candidate, error) {
	if p == nil || len(p.candidates) == 0 {
		return o, nil, invalid.New(ErrInvalid, "plan", "empty", "one from Parse")
	}
	if !(o.Scale >= 0 && o.Scale <= 1) {
		return o, nil, invalid.New(ErrInvalid, "Scale", fmt.Sprint(o.Scale), "0 for 0.01, or above 0 up to 1")
	}
	if o.Speed != 0 && !(o.Speed >= 1 && o.Speed <= 3600) {
		return o, nil, invalid.New(ErrInvalid, "Speed", fmt.Sprint(o.Speed), "0 for 60, or 1 to 3600")
	}
	if err := cmp.Or(
		invalid.Range(ErrInvalid, "Concurrency", o.Concurrency, 0, maxWorkers, "0 for 16, or up to 256"),
		invalid.Range(ErrInvalid, "MaxTime", o.MaxTime, 0, day, "0 for 10m, or up to 24h"),
	); err != nil {
		return o, nil, err
	}
	o.Scale, o.Speed = cmp.Or(o.Scale, 0.01), cmp.Or(o.Speed, 60)
	o.Concurrency, o.MaxTime = cmp.Or(o.Concurrency, 16), cmp.Or(o.MaxTime, 10*time.Minute)
	dir, err := filepath.Abs(cmp.Or(o.Dir, os.TempDir())) // the engine locks a folder by its path
	if err != nil {
		return o, nil, err
	}
	o.Dir = dir
	points, queries := p.scaled(o.Scale).expected()
	size := 0
	for _, d := range p.datasets {
		size = max(size, d.bytes+perRow)
	}
	if most := min(maxPoints, float64(maxStored)/float64(size)); points > most || queries > maxAsked {
		return o, nil, invalid.New(ErrInvalid, "Scale", number(o.Scale), fmt.Sprintf("a smaller one, such as %.2g: %.3g points and %.3g queries are more than the %.3g and %.3g that a run may execute",
			o.Scale*min(most/max(points, 1), maxAsked/max(queries, 1))*0.9, points, queries, most, float64(maxAsked)))
	}
	chosen, err := p.choose(o.Candidates)
	return o, chosen, err
}

// choose returns the candidates with these names, or all.
func (p *Plan) choose(names []string) ([]*candidate, error) {
	if len(names) == 0 {
		return p.candidates, nil
	}
	var out []*candidate
	for _, name := range names {
		i := slices.Index(p.Candidates(), name)
		if i < 0 {
			return nil, invalid.New(ErrInvalid, "candidate", invalid.Quote(name), strings.Join(p.Candidates(), ", "))
		}
		out = append(out, p.candidates[i])
	}
	return out, nil
}
