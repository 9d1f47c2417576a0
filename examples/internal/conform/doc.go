// Package conform tests what the SDK relies on, on any implementation of Bigtable. A run makes a table of its own and
// removes it, also after its context has ended. It lists what a killed run left.
package conform
