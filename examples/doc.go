// Package examples is the root of a module of its own, so users of Tidemark do not get its dependencies. The folders
// below hold programs to copy from, apps those to run as they are:
//
//	go run ./examples/NAME
//	go run ./examples/apps/NAME
package examples
