package tsdb

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/internal/catalog"
)

// describe returns the number under which the journal describes a dataset, and writes the description where there is none.
func (j *journal) describe(ctx context.Context, d *dataset) (uint64, error) {
	j.mu.Lock()
	number, ok := j.numbers[d]
	j.mu.Unlock()
	if ok {
		return number, nil
	}
	text, err := describeAs(d)
	if err != nil {
		return 0, err
	}
	for {
		next := uint64(0)
		for name, have := range j.spool.Metas() {
			n, ok := parseDescription(name)
			if ok && string(have) == string(text) {
				j.mu.Lock()
				defer j.mu.Unlock()
				if len(j.numbers) >= mostNumbers { // of a program that defines its schemas again and again
					clear(j.numbers)
				}
				j.numbers[d] = n
				if j.datasets[n] == nil {
					j.datasets[n] = d
				}
				return n, nil
			}
			if ok {
				next = max(next, n+1)
			}
		}
		if err := j.writeDescription(ctx, next, text); err != nil {
			return 0, err
		}
	}
}

// mostNumbers is for how many schemas the journal remembers the number of their description.
const mostNumbers = 1000

// describeAs returns the description of a dataset. One that could not be read again is refused: nobody could open a journal
// that holds it.
func describeAs(d *dataset) ([]byte, error) {
	text, err := json.Marshal(d.entry())
	if err != nil {
		return nil, err
	}
	_, err = readDescription(text)
	return text, err
}

func readDescription(text []byte) (*dataset, error) {
	var e catalog.Dataset
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, err
	}
	return described(e)
}

// writeDescription writes a description under a number that is free; where another was faster, it does nothing.
func (j *journal) writeDescription(ctx context.Context, number uint64, text []byte) error {
	j.describing.Lock()
	defer j.describing.Unlock()
	name := descriptionPrefix + strconv.FormatUint(number, 10)
	if _, taken := j.spool.Meta(name); taken {
		return nil
	}
	return j.spool.SetMeta(ctx, name, text)
}

const descriptionPrefix = "dataset/"

func parseDescription(name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, descriptionPrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

func (j *journal) readDescriptions() error {
	for name, text := range j.spool.Metas() {
		number, ok := parseDescription(name)
		if !ok {
			continue
		}
		d, err := readDescription(text)
		if err != nil {
			return fmt.Errorf("tsdb: the journal's %s: %w", name, err)
		}
		j.datasets[number] = d
	}
	return nil
}

// dataset returns the dataset that the journal describes under a number, or nil.
func (j *journal) dataset(number uint64) *dataset {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.datasets[number]
}
