package cursor

import "encoding/binary"

// timeSize is the length of a time in a place, in bytes.
const timeSize = 8

// WriteTime returns the cursor at the point of that time, in units, in a scope of Points.
func (b Box) WriteTime(s Scope, units int64) string { return b.WriteEvent(s, units, "") }

// WriteEvent returns the cursor at the point of that time, in units, and that ID in a scope of Events.
func (b Box) WriteEvent(s Scope, units int64, id string) string {
	return b.Write(s, append(binary.BigEndian.AppendUint64(nil, uint64(units)), id...))
}

// ReadTime returns the time in a cursor of a scope of Points. The time is within the scope's query: a forged cursor
// cannot leave the query.
func (b Box) ReadTime(s Scope, text string) (units int64, err error) {
	units, id, err := b.ReadEvent(s, text)
	if err == nil && id != "" {
		return 0, refused("not in the form of one")
	}
	return units, err
}

// ReadEvent is ReadTime for a scope of Events; it also returns the ID of the point. The ID can be any text, even empty.
func (b Box) ReadEvent(s Scope, text string) (units int64, id string, err error) {
	place, err := b.Read(s, text)
	if err != nil {
		return 0, "", err
	}
	if len(place) < timeSize {
		return 0, "", refused("not in the form of one")
	}
	units = int64(binary.BigEndian.Uint64(place))
	if units < s.Oldest || units > s.Newest {
		return 0, "", refused("outside of the query")
	}
	return units, string(place[timeSize:]), nil
}
