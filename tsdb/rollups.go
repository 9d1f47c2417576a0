package tsdb

// Rollup is a *rollup.Rollup[T], whatever its T, for SchemaOptions.Rollups. Define refuses a value of any other type.
type Rollup interface {
	// Name returns the rollup's name.
	Name() string
}
