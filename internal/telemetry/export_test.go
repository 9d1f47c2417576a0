package telemetry

// Operations is the number of operations.
const Operations = names

// Reads reports whether an operation returns rows.
func (n Name) Reads() bool { return operations[n].reads }
