package main

import (
	"runtime/debug"
)

// version returns the version of the module that the program was built from, or else its commit; "(devel)" where the
// build does not know either.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
			return s.Value
		}
	}
	if v == "" {
		return "(devel)"
	}
	return v
}
