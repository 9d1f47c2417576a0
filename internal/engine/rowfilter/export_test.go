package rowfilter

import "slices"

// Contains reports whether a cell is within the bounds, without CellsPerColumn.
func (b Bounds) Contains(c *Cell) bool {
	return (b.Families == nil || slices.Contains(b.Families, c.Family)) && b.qualifiers().contains(c.Qualifier) &&
		c.Timestamp >= b.StartTimestamp && (b.EndTimestamp == 0 || c.Timestamp < b.EndTimestamp)
}
