// Package docs tests the documentation: it compiles and runs the Go code in README.md and docs/.
package docs
