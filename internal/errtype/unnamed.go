package errtype

// Errors of public packages that export no name for them, because no program decides by them.
var (
	// ErrErasing means that a tenant, an entity or a dataset is released before its deletion has ended.
	ErrErasing = New("tenants.ErrErasing", "tenants: the erasure has not ended")
	// ErrRemains means that new rows keep appearing after an erasure, from a program that does not apply the mark.
	ErrRemains = New("tenants.ErrRemains", "tenants: rows remain after the erasure")
	// ErrPlan means that a retention plan has an impossible step.
	ErrPlan = New("retention.ErrImpossible", "retention: the plan cannot be applied")
	// ErrCheckpoint means that a checkpoint does not belong to the file.
	ErrCheckpoint = New("transfer.ErrContinue", "transfer: the checkpoint is of another file")
)
