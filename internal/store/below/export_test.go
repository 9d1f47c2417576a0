package below

// SetSlice sets how many points ByTime holds at most.
func (r *Read) SetSlice(n int64) { r.slice = n }
