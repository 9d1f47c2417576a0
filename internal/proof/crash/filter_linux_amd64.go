package crash

const (
	sysSeccomp       = 317
	sysRenameat2     = 316
	sysCopyFileRange = 326
)
