// Package docs holds the tests of the documentation: the Go code in README.md and docs/ is compiled and run.
package docs
