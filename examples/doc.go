// Package examples is the root of a separate module, which keeps the dependencies of the example programs out of the
// module graph of Tidemark's users. The folders below hold programs to copy from, and apps the programs to run as they
// are. Run them from the root of the repository:
//
//	go run ./examples/NAME
//	go run ./examples/apps/NAME
package examples
