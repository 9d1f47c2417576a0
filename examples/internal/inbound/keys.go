package inbound

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/tsdb"
)

// Keys holds the tags that are the key of each dataset, in order. A ? after one means that a record may lack it: then
// that part of the key is a "-". A tag that is a "-" itself has a backslash before it, or the two would be one series.
type Keys map[string][]string

const (
	// AnyDataset stands for the datasets that Keys does not name.
	AnyDataset = "*"
	// OtherTags, as the last of a dataset's key tags, means all other tags.
	OtherTags = "*"
	// OtherHash, as the last, means a hash of all other tags and of what PointBuilder.Stream says. Records of such a
	// dataset are written without reading, and not merged.
	OtherHash = "*hash"
)

var errHash = errors.New("the key has " + OtherHash + ", which only a mapping of OTLP can have")

// Set takes a rule such as cpu=host,* from the command line.
func (ks Keys) Set(text string) error {
	name, list, ok := strings.Cut(text, "=")
	if !ok || name == "" || list == "" {
		return errors.New("must be measurement=tag,tag")
	}
	tags := strings.Split(list, ",")
	if slices.Contains(tags, OtherHash) {
		return errHash
	}
	return ks.Add(name, tags)
}

// Add takes the rule of one dataset, or of AnyDataset.
func (ks Keys) Add(name string, tags []string) error {
	if ks[name] != nil {
		return fmt.Errorf("the measurement %s has a key already", name)
	}
	for i, tag := range tags {
		name := keyNames(tags[i : i+1])[0]
		switch {
		case name == "":
			return errors.New("a tag is empty")
		case slices.Contains(keyNames(tags[:i]), name):
			return fmt.Errorf("the tag %s is given twice", tag)
		case (name == OtherTags || name == OtherHash) && i < len(tags)-1:
			return fmt.Errorf("%s is not the last tag", tag)
		}
	}
	example := name
	if name == AnyDataset {
		example = "any"
	}
	if _, err := newDataset(example, tags, tsdb.SchemaOptions{}, nil); err != nil {
		return err
	}
	ks[name] = tags
	return nil
}

// missing is the part of a key that a record lacks, if the key allows that.
const missing = "-"

// keyNames returns the names of the tags of a rule.
func keyNames(tags []string) []string {
	names := make([]string, len(tags))
	for i, tag := range tags {
		names[i] = strings.TrimSuffix(tag, "?")
	}
	return names
}
