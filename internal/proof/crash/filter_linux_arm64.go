package crash

const (
	sysSeccomp       = 277
	sysRenameat2     = 276
	sysCopyFileRange = 285
)
