// Package examples is the root of a module of its own, so that what the example programs need stays out of the module
// graph of those who use Tidemark. Each program is a folder below, to be run from the root of the repository:
//
//	go run ./examples/NAME
package examples
