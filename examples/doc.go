// Package examples is the root of a separate module, which keeps the dependencies of the example programs out of the module
// graph of Tidemark's users. Each folder below is a program. Run it from the root of the repository:
//
//	go run ./examples/NAME
package examples
