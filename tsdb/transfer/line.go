package transfer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

const (
	// maxLine bounds a line: a payload of 10 MiB in base64, and a key with every byte escaped.
	maxLine = 16 << 20
	// maxPayload is the largest payload in bytes.
	maxPayload = 10 << 20
	// timeLayout is RFC 3339 with as many digits as the time needs.
	timeLayout = "2006-01-02T15:04:05.999999999Z07:00"
	// jsonTag is the codec tag whose payloads are written as JSON.
	jsonTag = "json"
	// deepJSON is the most opening brackets in a payload that is written as JSON: decoders limit the depth.
	deepJSON = 5000
)

// pointLine is the line of a point. Units replaces Time if the year has more than four digits.
type pointLine struct {
	Dataset string          `json:"dataset"`
	Entity  []string        `json:"entity"`
	Time    string          `json:"time"`
	Units   *int64          `json:"units"`
	ID      string          `json:"id"`
	Class   string          `json:"class"`
	Tag     string          `json:"tag"`
	JSON    json.RawMessage `json:"json"`
	Base64  *string         `json:"base64"`
}

// appendPoint appends the line of a point, without its seal. Every point has exactly one line.
func appendPoint(dst []byte, d *dataset, p points.RawPoint) []byte {
	dst = appendString(append(dst, `{"dataset":`...), d.Name)
	dst = append(dst, `,"entity":[`...)
	for i, part := range rowkey.Parts(p.Path) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, part)
	}
	if t := d.precision.Time(p.Units); t.Year() <= 9999 {
		dst = t.AppendFormat(append(dst, `],"time":"`...), timeLayout)
		dst = append(dst, '"')
	} else {
		dst = strconv.AppendInt(append(dst, `],"units":`...), p.Units, 10)
	}
	if p.ID != "" {
		dst = appendString(append(dst, `,"id":`...), p.ID)
	}
	dst = appendString(append(dst, `,"class":`...), p.Class)
	dst = appendString(append(dst, `,"tag":`...), p.Tag)
	if p.Tag == jsonTag && readable(p.Payload) {
		return append(append(dst, `,"json":`...), p.Payload...)
	}
	dst = base64.StdEncoding.AppendEncode(append(dst, `,"base64":"`...), p.Payload)
	return append(dst, '"')
}

// readable reports whether a payload can be part of a JSON line and be restored byte for byte.
func readable(payload []byte) bool {
	return len(payload) > 0 && bytes.IndexByte(payload, '\n') < 0 && bytes.IndexByte(payload, '\r') < 0 && len(bytes.Trim(payload, " \t")) == len(payload) &&
		bytes.Count(payload, []byte{'['})+bytes.Count(payload, []byte{'{'}) < deepJSON && utf8.Valid(payload) && json.Valid(payload)
}

const hexDigits = "0123456789abcdef"

// appendString appends valid UTF-8 as a JSON string.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20 || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// parsePoint parses the line of a point, without its seal, and checks each member. The caller owns the payload.
func (h *header) parsePoint(text []byte) (*dataset, points.RawPoint, error) {
	var l pointLine
	if err := json.Unmarshal(append(bytes.Clone(text), '}'), &l); err != nil {
		return nil, points.RawPoint{}, invalid.New(ErrDamaged, "the line", err.Error(), "a point, a sum or an end")
	}
	d := h.dataset(l.Dataset)
	if d == nil {
		return nil, points.RawPoint{}, invalid.New(ErrDamaged, "dataset", invalid.Quote(l.Dataset), "a dataset in the header")
	}
	p := points.RawPoint{Path: rowkey.Path(l.Entity...), ID: l.ID, Class: l.Class, Tag: l.Tag}
	if err := d.check(p, l.Entity); err != nil {
		return nil, p, err
	}
	var err error
	if p.Units, err = d.units(&l); err != nil {
		return nil, p, err
	}
	switch {
	case l.Base64 != nil:
		if p.Payload, err = base64.StdEncoding.Strict().DecodeString(*l.Base64); err != nil {
			return nil, p, invalid.New(ErrDamaged, "base64", invalid.Quote(*l.Base64), "base64 with padding")
		}
	case l.JSON != nil:
		p.Payload = l.JSON
	}
	if len(p.Payload) > maxPayload {
		return nil, p, invalid.New(ErrDamaged, "payload", strconv.Itoa(len(p.Payload))+" bytes", "at most 10 MiB")
	}
	if !bytes.Equal(appendPoint(nil, d, p), text) {
		return nil, p, invalid.New(ErrDamaged, "the line", "not as an export writes it", "the order and spelling of members that an export has")
	}
	return d, p, nil
}

// check rejects a point that its dataset cannot store.
func (d *dataset) check(p points.RawPoint, parts []string) error {
	if err := d.space.CheckPath(p.Path); err != nil {
		return &invalid.Error{Field: "entity", Value: invalid.Quote(p.Path), Limit: "one value for each key field of " + d.Name, Err: ErrDamaged}
	}
	for _, part := range parts {
		if part == "" || !utf8.ValidString(part) {
			return invalid.New(ErrDamaged, "entity", invalid.Quote(part), "at least 1 byte of UTF-8")
		}
	}
	if d.space.CheckID(p.ID) != nil {
		return invalid.New(ErrDamaged, "id", invalid.Quote(p.ID), "an ID that dataset "+d.Name+" can store")
	}
	if !slices.ContainsFunc(d.Classes, func(c catalog.Class) bool { return c.Name == p.Class }) {
		return invalid.New(ErrDamaged, "class", invalid.Quote(p.Class), "a retention class of dataset "+d.Name)
	}
	if !slices.Contains(d.Tags, p.Tag) {
		return invalid.New(ErrDamaged, "tag", invalid.Quote(p.Tag), "a codec tag of dataset "+d.Name)
	}
	return nil
}

// units returns the time of a point in units of its dataset.
func (d *dataset) units(l *pointLine) (int64, error) {
	if l.Units != nil {
		if *l.Units < 0 || *l.Units > d.precision.Max() {
			return 0, invalid.New(ErrDamaged, "units", strconv.FormatInt(*l.Units, 10), "0 to "+strconv.FormatInt(d.precision.Max(), 10))
		}
		return *l.Units, nil
	}
	t, err := time.Parse(timeLayout, l.Time)
	if err != nil {
		return 0, invalid.New(ErrDamaged, "time", invalid.Quote(l.Time), "an RFC 3339 time in UTC")
	}
	units, err := d.precision.Units(t)
	if err != nil {
		return 0, invalid.New(ErrDamaged, "time", invalid.Quote(l.Time), "a time that a point of "+d.Name+" can have")
	}
	return units, nil
}
