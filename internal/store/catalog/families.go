package catalog

// The column families of a rollup in a retention class are named by the class and these endings; docs/format.md describes them.
const (
	SumEnding     = ".s"
	MinEnding     = ".n"
	MaxEnding     = ".x"
	ControlEnding = ".c"
)
