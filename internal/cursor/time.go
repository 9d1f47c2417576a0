package cursor

import "encoding/binary"

// timeSize is how many bytes of a place are a time.
const timeSize = 8

// WriteTime returns the cursor that stands at the point of that time, in units, and of that ID in a scope of Events, which has
// at least a byte. In one of Points it is empty.
func (b Box) WriteTime(s Scope, units int64, id string) string {
	return b.Write(s, append(binary.BigEndian.AppendUint64(nil, uint64(units)), id...))
}

// ReadTime returns the time and the ID at which a cursor of that scope stands. The time is one of those that the scope asks for,
// whatever the cursor says: a forged one cannot lead out of them. Its ID can be anything, empty only in a scope of Points.
func (b Box) ReadTime(s Scope, text string) (units int64, id string, err error) {
	place, err := b.Read(s, text)
	if err != nil {
		return 0, "", err
	}
	if len(place) < timeSize || (len(place) == timeSize) != (s.Kind == Points) {
		return 0, "", refused("not in the form of one")
	}
	units = int64(binary.BigEndian.Uint64(place))
	if units < s.Oldest || units > s.Newest {
		return 0, "", refused("outside of the query")
	}
	return units, string(place[timeSize:]), nil
}
