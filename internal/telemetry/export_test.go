package telemetry

// Operations is how many operations there are.
const Operations = names

// Reads reports whether an operation returns rows.
func (n Name) Reads() bool { return operations[n].reads }
