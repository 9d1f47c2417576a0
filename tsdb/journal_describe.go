package tsdb

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// describe returns the number under which the journal describes a dataset, and writes the description where there is none.
func (j *journal) describe(ctx context.Context, d *dataset.Dataset) (uint64, error) {
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
	n, err := j.describeText(ctx, descriptionPrefix, text)
	if err != nil {
		return 0, err
	}
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

// describeAdded is describe for a rollup to which events are added.
func (j *journal) describeAdded(ctx context.Context, to *added) (uint64, error) {
	j.mu.Lock()
	number, ok := j.addNumbers[to.text]
	j.mu.Unlock()
	if ok {
		return number, nil
	}
	n, err := j.describeText(ctx, addedPrefix, []byte(to.text))
	if err != nil {
		return 0, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.addNumbers) >= mostNumbers {
		clear(j.addNumbers)
	}
	j.addNumbers[to.text] = n
	if j.rollups[n] == nil {
		j.rollups[n] = to
	}
	return n, nil
}

// describeText returns the number under which the journal holds a description, and writes it where there is none. Datasets
// and rollups share their numbers.
func (j *journal) describeText(ctx context.Context, prefix string, text []byte) (uint64, error) {
	for {
		next := uint64(0)
		for name, have := range j.spool.Metas() {
			n, of, ok := parseDescription(name)
			if ok && of == prefix && string(have) == string(text) {
				return n, nil
			}
			if ok {
				next = max(next, n+1)
			}
		}
		if err := j.writeDescription(ctx, prefix, next, text); err != nil {
			return 0, err
		}
	}
}

// mostNumbers is for how many schemas the journal remembers the number of their description.
const mostNumbers = 1000

// describeAs returns the description of a dataset. One that could not be read again is refused: nobody could open a journal
// that holds it.
func describeAs(d *dataset.Dataset) ([]byte, error) {
	text, err := json.Marshal(d.ToCatalog())
	if err != nil {
		return nil, err
	}
	_, err = readDescription(text)
	return text, err
}

func readDescription(text []byte) (*dataset.Dataset, error) {
	var e catalog.Dataset
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, err
	}
	return dataset.FromCatalog(e)
}

// writeDescription writes a description under a number that is free; where another was faster, it does nothing.
func (j *journal) writeDescription(ctx context.Context, prefix string, number uint64, text []byte) error {
	j.describing.Lock()
	defer j.describing.Unlock()
	digits := strconv.FormatUint(number, 10)
	for _, p := range descriptionPrefixes {
		if _, taken := j.spool.Meta(p + digits); taken {
			return nil
		}
	}
	return j.spool.SetMeta(ctx, prefix+digits, text)
}

const (
	descriptionPrefix = "point/"
	addedPrefix       = "event/"
	// Of descriptions from before records had a generation:
	plainPrefix      = "dataset/"
	plainAddedPrefix = "rollup/"
)

var descriptionPrefixes = []string{descriptionPrefix, addedPrefix, plainPrefix, plainAddedPrefix}

func parseDescription(name string) (number uint64, prefix string, ok bool) {
	for _, p := range descriptionPrefixes {
		if digits, ok := strings.CutPrefix(name, p); ok {
			n, err := strconv.ParseUint(digits, 10, 64)
			return n, p, err == nil
		}
	}
	return 0, "", false
}

func (j *journal) readDescriptions() error {
	for name, text := range j.spool.Metas() {
		number, prefix, ok := parseDescription(name)
		if !ok {
			continue
		}
		j.plain[number] = prefix == plainPrefix || prefix == plainAddedPrefix
		if prefix == addedPrefix || prefix == plainAddedPrefix {
			to, err := readAdded(text)
			if err != nil {
				return fmt.Errorf("tsdb: the journal's %s: %w", name, err)
			}
			j.rollups[number] = to
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
