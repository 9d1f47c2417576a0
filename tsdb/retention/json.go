package retention

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// maxPlan bounds the bytes that ReadPlan reads. A plan for a catalogue of 10,000 datasets has about half of it.
const maxPlan = 32 << 20

// MarshalJSON implements json.Marshaler. The format is stable and has a version.
func (p *Plan) MarshalJSON() ([]byte, error) {
	if p == nil || p.doc.Format == "" {
		return nil, invalid.New(tsdb.ErrInvalid, "plan", "the zero value", "a plan from NewPlan, NewPlanFor or ReadPlan")
	}
	return json.Marshal(p.doc)
}

// ReadPlan reads a plan in JSON up to the end of r. It fails with tsdb.ErrInvalid for more than 32 MiB, or another
// version than this package writes. A plan from outside is as safe as one made here: Apply compares again, and uses
// what it finds.
func ReadPlan(r io.Reader) (*Plan, error) {
	if r == nil {
		return nil, invalid.New(tsdb.ErrInvalid, "reader", "nil", "an io.Reader with a plan")
	}
	text, err := io.ReadAll(io.LimitReader(r, maxPlan+1))
	if err != nil {
		return nil, fmt.Errorf("retention: read a plan: %w", err)
	}
	if len(text) > maxPlan {
		return nil, invalid.New(tsdb.ErrInvalid, "plan", "over 32 MiB", "at most 32 MiB")
	}
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, invalid.New(tsdb.ErrInvalid, "plan", invalid.Quote(string(text)), "a plan in JSON: "+err.Error())
	}
	if head.Format != planFormat || head.Version != planVersion {
		return nil, invalid.New(tsdb.ErrInvalid, "plan", invalid.Quote(head.Format)+" of version "+strconv.Itoa(head.Version),
			strconv.Quote(planFormat)+" of version "+strconv.Itoa(planVersion))
	}
	p := &Plan{}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields() // a plan with unknown fields must not be applied
	if err := dec.Decode(&p.doc); err != nil {
		return nil, invalid.New(tsdb.ErrInvalid, "plan", "not a plan of this version", "a plan that this version made: "+err.Error())
	}
	for n, i := range p.doc.Items {
		if _, ok := signs[i.Kind]; !ok {
			return nil, invalid.New(tsdb.ErrInvalid, "kind of item "+strconv.Itoa(n), invalid.Quote(i.Kind), "a kind that this version knows")
		}
	}
	return p, nil
}
