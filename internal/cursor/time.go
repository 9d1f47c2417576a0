package cursor

import "encoding/binary"

// WriteTime returns the cursor that stands at the point of that time, in units, in a scope of Points.
func (b Box) WriteTime(s Scope, units int64) string {
	return b.Write(s, binary.BigEndian.AppendUint64(nil, uint64(units)))
}

// ReadTime returns the time at which a cursor of that scope stands. It is one of the times that the scope asks for, whatever
// the cursor says: a forged one cannot lead out of them.
func (b Box) ReadTime(s Scope, text string) (units int64, err error) {
	place, err := b.Read(s, text)
	if err != nil {
		return 0, err
	}
	if len(place) != 8 {
		return 0, refused("not in the form of one")
	}
	units = int64(binary.BigEndian.Uint64(place))
	if units < s.Oldest || units > s.Newest {
		return 0, refused("outside of the query")
	}
	return units, nil
}
