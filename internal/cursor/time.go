package cursor

import "encoding/binary"

// timeSize is how many bytes of a place are a time.
const timeSize = 8

// WriteTime returns the cursor that stands at the point of that time, in units, in a scope of Points.
func (b Box) WriteTime(s Scope, units int64) string { return b.WriteEvent(s, units, "") }

// WriteEvent returns the cursor that stands at the point of that time, in units, and of that ID in a scope of Events.
func (b Box) WriteEvent(s Scope, units int64, id string) string {
	return b.Write(s, append(binary.BigEndian.AppendUint64(nil, uint64(units)), id...))
}

// ReadTime returns the time at which a cursor of a scope of Points stands. It is one of the times that the scope asks for,
// whatever the cursor says: a forged one cannot lead out of them.
func (b Box) ReadTime(s Scope, text string) (units int64, err error) {
	units, id, err := b.ReadEvent(s, text)
	if err == nil && id != "" {
		return 0, refused("not in the form of one")
	}
	return units, err
}

// ReadEvent is ReadTime for a scope of Events, with the ID of the point. It can be any text, also an empty one.
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
