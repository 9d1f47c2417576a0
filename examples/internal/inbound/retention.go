package inbound

import (
	"regexp"
	"strings"

	"github.com/tidemark-go/tidemark/gc"
)

// Retention returns the class of points that expire as a policy says: never, or maxage=30d. Its name is made of the
// policy's.
func Retention(policy string) (gc.Class, error) {
	p, err := gc.Parse(policy)
	if err != nil {
		return gc.Class{}, err
	}
	if _, _, err := p.PointAge(); err != nil {
		return gc.Class{}, err
	}
	if p.Equal(gc.Never()) {
		return gc.Class{}, nil
	}
	return gc.Class{Name: strings.Trim(notInNames.ReplaceAllString(policy, "-"), "-"), Policy: p}, nil
}

// notInNames are the bytes that the name of a retention class cannot have.
var notInNames = regexp.MustCompile(`[^A-Za-z0-9]+`)
